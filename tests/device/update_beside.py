#!/usr/bin/env python3
"""Measures in PyTorch what a step gains if AdamW's update runs on a second stream beside the next forward (docs/decisions.md).

    python3 update_beside.py MODEL,SEQUENCES,TOKENS...

MODEL: a key of pytorch_steps.MODELS. The blocks alone, with weights in bf16. The update moves 28 bytes a parameter, as kzero's. The
forward of a block waits for the update of that block. Prints a line of JSON for each model. Runs on a GPU if there is one; on a CPU
only to see that it works.
"""

import argparse
import contextlib
import json
import statistics
import time

import torch
from pytorch_steps import MODELS, Block

REPEATS, WARM_UP = 7, 2
SLEEP = 60_000_000  # cycles that the device waits until the host has enqueued everything, at most 0.05 s
HIGH, LOW = -1, 0  # priorities of streams


class State:
    """The arrays of a block's update: it reads 16 bytes a parameter, and writes 12 of them."""

    def __init__(self, block):
        elements = sum(parameter.numel() for parameter in block.parameters())
        device = next(block.parameters()).device
        self.weights, self.gradients, self.first, self.second = (
            [torch.full((elements,), value, device=device)] for value in (0.1, 1e-3, 1e-3, 1e-6)
        )
        self.steps = [torch.full((), 10.0, device=device)]

    def update(self):
        torch._fused_adamw_(
            self.weights, self.gradients, self.first, self.second, [], self.steps,
            lr=1e-4, beta1=0.9, beta2=0.95, weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
        )  # fmt: skip


class Device:
    """A GPU's streams and clock."""

    def stream(self, priority):
        return torch.cuda.Stream(priority=priority)

    def use(self, stream):
        return torch.cuda.stream(stream)

    def order(self, earlier, later):
        later.wait_event(earlier.record_event())

    def milliseconds(self, stream, work):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(SLEEP)
            begin.record()
            work()
            end.record()
        end.synchronize()
        return begin.elapsed_time(end)


class Host(Device):
    """A CPU in a device's place, where nothing overlaps."""

    def stream(self, priority):
        return None

    def use(self, stream):
        return contextlib.nullcontext()

    def order(self, earlier, later):
        pass

    def milliseconds(self, stream, work):
        begin = time.perf_counter()
        work()
        return (time.perf_counter() - begin) * 1e3


def works(device, blocks, states, x, angles, products, updates):
    """The works to measure, by name. Forwards run on the stream `products`, and updates beside them on `updates`."""

    def update():
        for state in states:
            state.update()

    def forward():
        y = x
        for block in blocks:
            y = block(y, angles)

    def both():
        update()
        forward()

    def beside():
        device.order(products, updates)
        y = x
        for state, block in zip(states, blocks):
            with device.use(updates):
                state.update()
            device.order(updates, products)
            y = block(y, angles)

    return {"update": update, "forward": forward, "in a row": both, "beside": beside}


def measure(device, blocks, x, angles):
    states = [State(block) for block in blocks]
    high, low, other = device.stream(HIGH), device.stream(LOW), device.stream(LOW)
    work = works(device, blocks, states, x, angles, low, other)
    preferred = works(device, blocks, states, x, angles, high, low)
    cases = {name: (low, run) for name, run in work.items()} | {"beside with priority": (high, preferred["beside"])}
    times = {name: [] for name in cases}
    for _ in range(WARM_UP + REPEATS):
        for name, (stream, run) in cases.items():
            times[name].append(device.milliseconds(stream, run))
    return {name: statistics.median(all_times[WARM_UP:]) for name, all_times in times.items()}


def measure_case(case):
    """Milliseconds of each work for MODEL,SEQUENCES,TOKENS."""
    model, sequences, tokens = case.split(",")
    shape, batch = MODELS[model], (int(sequences), int(tokens))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    blocks = [Block(shape).to(device, torch.bfloat16) for _ in range(shape.layers)]
    x = torch.randn(*batch, shape.hidden, device=device, dtype=torch.bfloat16)
    angles = torch.rand(batch[1], shape.hidden // shape.heads // 2, device=device) if shape.kv_heads > 0 else None
    return measure(Device() if device == "cuda" else Host(), blocks, x, angles)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("cases", nargs="+")
    for case in parser.parse_args().cases:
        with torch.no_grad():
            print(json.dumps({"case": case, "milliseconds": measure_case(case)}), flush=True)


if __name__ == "__main__":
    main()
