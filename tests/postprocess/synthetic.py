"""A metrics file as a run would write it that was killed, restarted, and skipped two steps."""

import json
import math
import random

MIB = 2**20


def step_record(step, rng, scale):
    loss = 2.1 + 3.4 * math.exp(-step / 60 * scale) + rng.gauss(0, 0.06)
    skipped = step in (130, 131)
    rate = 21000 * (1 + rng.gauss(0, 0.02)) * (0.6 if step % 50 == 0 else 1)
    return {
        "event": "step", "step": step, "loss": loss,
        "grad_norm": None if skipped else 1 + rng.random(), "lr": 3e-4,
        "tokens": 2048, "seconds": 2048 / rate, "tokens_per_second": rate,
        "mfu": rate * 5.4e6 / 2.6e11, "loss_scale": 1, "skipped": skipped,
    }  # fmt: skip


def write(path, steps=300, killed_at=170, resumed_from=150, scale=1.0):
    rng = random.Random(1)
    start = {"event": "start", "git_hash": "0", "grid": {"data": 2, "tensor": 1}, "first_step": 0}
    sizes = {"parameters": 3.2, "gradients": 3.2, "optimizer": 6.4, "activations": 48,
             "recompute": 0, "buckets": 16, "workspace": 9, "io": 0.02}  # fmt: skip
    end = {
        "event": "end", "reason": "completed", "steps": steps,
        "memory": [
            {"rank": rank, "resident_peak_bytes": int((151 + rank) * MIB),
             "categories": {name: {"planned_bytes": int(size * MIB), "peak_bytes": int(size * MIB)}
                            for name, size in sizes.items()}}
            for rank in range(2)
        ],
        "traffic": [],
    }  # fmt: skip
    with open(path, "w") as file:
        write_line = lambda record: print(json.dumps(record), file=file)
        write_line(start)
        for step in range(killed_at):
            lost = {"loss": 99.0} if step >= resumed_from else {}
            write_line({**step_record(step, rng, scale), **lost})
            if (step + 1) % 50 == 0:
                write_line({"event": "validation", "step": step + 1, "tokens": 8192, "seconds": 0.4,
                            "loss": 2.2 + 3.4 * math.exp(-step / 60 * scale)})  # fmt: skip
        file.write('{"event":"step","st\n')
        write_line({**start, "first_step": resumed_from})
        for step in range(resumed_from, steps):
            write_line(step_record(step, rng, scale))
            if (step + 1) % 50 == 0:
                write_line({"event": "validation", "step": step + 1, "tokens": 8192, "seconds": 0.4,
                            "loss": 2.2 + 3.4 * math.exp(-step / 60 * scale)})  # fmt: skip
        write_line(end)
