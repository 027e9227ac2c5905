#!/usr/bin/env python3
"""PyTorch's attention by the window, beside `kernel_benchmark REPEATS windows`.

    OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive VENV/bin/python -P compare_windows.py [--repeats 2] [--sides sdpa flex]

-P, as torch would otherwise take profile.py of this folder for Python's.

One sequence, 8 heads of width 64. `sdpa` is scaled_dot_product_attention, with a mask of T x T or is_causal; `flex` is
torch.compile(flex_attention) with a block mask. Prints processor seconds in user mode, the least of some calls.
"""

import argparse
import resource

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

HEADS, WIDTH = 8, 64


def seconds():
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def sdpa(length, window):
    if window == 0:
        return lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True)
    rows, keys = torch.arange(length)[:, None], torch.arange(length)[None, :]
    mask = (keys <= rows) & (keys > rows - window)
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=mask)


def flex(length, window):
    def sees(_batch, _head, row, key):
        return (key <= row) & (key > row - window) if window else key <= row

    mask = create_block_mask(sees, None, None, length, length, device="cpu")
    compiled = torch.compile(flex_attention)
    return lambda q, k, v: compiled(q, k, v, block_mask=mask)


def measure(side, length, window, dtype, repeats):
    torch.compiler.reset()  # or it compiles once for windows of any size
    call = {"sdpa": sdpa, "flex": flex}[side](length, window)
    torch.manual_seed(1)
    q, k, v, gradient = (torch.randn(1, HEADS, length, WIDTH, dtype=dtype) for _ in range(4))
    with torch.no_grad():
        call(q, k, v)  # compiles
        forward = min(timed(lambda: call(q, k, v)) for _ in range(repeats))
    for x in (q, k, v):
        x.requires_grad_()
    try:
        out = call(q, k, v)
        backward = min(timed(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)) for _ in range(repeats))
    except Exception as error:  # what torch says is the result
        return forward, next(line for line in reversed(str(error).splitlines()) if line.strip())
    return forward, f"{backward:.3f} s"


def timed(call):
    begin = seconds()
    call()
    return seconds() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--sides", nargs="+", default=["sdpa", "flex"], choices=["sdpa", "flex"])
    arguments = parser.parse_args()
    for side in arguments.sides:
        for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
            for length in (4096, 16384):
                for window in (256, 1024, 4096, 0):
                    if window >= length:
                        continue
                    forward, backward = measure(side, length, window, dtype, arguments.repeats)
                    print(
                        f"{side} {name} T {length:>5} window {window:>4}  forward {forward:.3f} s  backward {backward}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
