#!/usr/bin/env python3
"""The time of an update by torch.optim, for the rows that optimizer_benchmark prints.

    python -P compare_optimizers.py [--repeats 8]

The same parameters (the blocks of gpt2-124m, fp32), one thread, torch's fastest implementation of each kind that runs
on processors: fused, else foreach, else a loop. Muon there has no AdamW for vectors, so it gets the matrices alone.
"""

import argparse
import time

import torch

KINDS = {
    "adamw": lambda p, **way: torch.optim.AdamW(p, lr=1e-3, **way),
    "sgd": lambda p, **way: torch.optim.SGD(p, lr=1e-3, momentum=0.9, weight_decay=0.1, **way),
    "adafactor": lambda p, **way: torch.optim.Adafactor(p, lr=1e-2, **way),
    "muon": lambda p, **way: torch.optim.Muon([t for t in p if t.dim() == 2], lr=1e-3, **way),
}
WAYS = ({"fused": True}, {"foreach": True}, {})


def parameters():
    shapes = [(1536,), (2304, 768), (2304,), (768, 768), (768,), (1536,), (3072, 768), (3072,), (768, 3072), (768,)]
    tensors = [torch.nn.Parameter(torch.randn(shape) * 0.02) for _ in range(12) for shape in shapes]
    for tensor in tensors:
        tensor.grad = torch.randn_like(tensor) * 0.01
    return tensors


def fastest(optimizer, repeats):
    optimizer.step()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=8)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    for kind, make in KINDS.items():
        tensors = parameters()
        elements = sum(t.numel() for t in tensors)
        for way in WAYS:
            try:
                seconds = fastest(make(tensors, **way), repeats)
            except (TypeError, RuntimeError):
                continue  # this kind has no such implementation
            print(
                f"{kind:10} {next(iter(way), 'loop'):8} {1e3 * seconds:9.1f} ms  {1e9 * seconds / elements:6.2f} ns an element",
                flush=True,
            )


if __name__ == "__main__":
    main()
