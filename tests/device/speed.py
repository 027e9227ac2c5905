"""The speed of training steps and of their parts, and the memory that they take."""

import json
import re
import statistics

from device_memory import UsedMemory, device_mib, planned_mib
from training import train

GPT2, LLAMA, LLAMA_8B = "gpt2-124m.toml", "llama/llama-3.2-1b.toml", "gpu/llama-3.1-8b.toml"
PEAK_TFLOPS = 989  # of bf16 without sparsity, H100 and H200 SXM
STEPS, WARM_UP, PROFILED = 9, 2, 7
LARGE = {"model.layers": 48, "model.hidden": 1600, "model.heads": 25}  # GPT-2 of 1.5 billion parameters
LLAMA_KEYS = {
    "model.sequence": 2048,
    "recompute.mode": "none",
    "optimizer.warmup": 0,
    "checkpoint.folder": "",
    "checkpoint.every": 0,
}
EIGHT_B = {"model.sequence": 2048, "recompute.mode": "full"}  # 128 GiB on one device: left out where there is less


def batch(sequences, micro_batches=1):
    return {"train.global_batch": micro_batches * sequences, "train.micro_batch": sequences}


# (name, deck, overrides), the most informative first
CASES = (
    ("124M 32x1024", GPT2, batch(32)),
    ("1.5B 8x1024", GPT2, LARGE | batch(8)),
    ("Llama-1B 4x2048", LLAMA, LLAMA_KEYS | batch(4)),
    ("124M 64x1024", GPT2, batch(64)),
    ("1.5B 32x1024", GPT2, LARGE | batch(32)),
    ("Llama-1B 16x2048", LLAMA, LLAMA_KEYS | batch(16)),
    ("Llama-8B 8x2048", LLAMA_8B, EIGHT_B | batch(8)),  # all blocks are recomputed
    ("124M 4x32x1024", GPT2, batch(32, 4)),
    ("Llama-1B 4x4x2048", LLAMA, LLAMA_KEYS | batch(4, 4)),
    ("1.5B 4x8x1024", GPT2, LARGE | batch(8, 4)),
    ("124M 8x1024", GPT2, batch(8)),
    ("124M 8x1024 V 50264", GPT2, batch(8) | {"model.vocab": 50264}),
    ("124M 8x1024 V 50304", GPT2, batch(8) | {"model.vocab": 50304}),
    ("124M 8x1024 kzero", GPT2, batch(8) | {"run.attention": "kzero"}),
    ("124M 32x1024 kzero", GPT2, batch(32) | {"run.attention": "kzero"}),
    ("Llama-1B 4x2048 kzero", LLAMA, LLAMA_KEYS | batch(4) | {"run.attention": "kzero"}),
)
# Written down before these were measured, for an H200 (2026-11-28). A measurement far from one means that a cause is not understood.
PREDICTED = {
    "124M 32x1024": "61.3 ms",
    "1.5B 8x1024": "48 to 50 % MFU",
    "Llama-1B 16x2048": "55 % MFU",
    "124M 64x1024": "122 ms",  # this and the next: 2026-11-29, without the changes that docs/devices.md predicts
    "1.5B 32x1024": "648 ms",
}


def overrides_for(machine, case):
    """Of a run in bf16 with cuDNN's attention, unless the case asks for another: a missing cuDNN is then an error."""
    always = {
        "train.steps": STEPS,
        "train.precision": "bf16",
        "data.files": machine.bundle / "text",
        "data.format": "bytes",
        "run.attention": "cudnn",
        "run.peak_tflops": PEAK_TFLOPS,
        "run.communicator": "mpi",
    }
    return always | case


def own_times(events):
    """{(kind, name): [ms within no other span, calls, GFLOP]} of a time line. Spans of a thread nest."""
    times, open_spans = {}, []
    spans = sorted((e for e in events if e.get("ph") == "X"), key=lambda e: (e["pid"], e["tid"], e["ts"], -e["dur"]))
    for span in spans:
        lane, end = (span["pid"], span["tid"]), span["ts"] + span["dur"]
        while open_spans and (open_spans[-1][0] != lane or open_spans[-1][1] <= span["ts"] + 0.0015):
            open_spans.pop()
        label = re.sub(r"kzero::\w+::(multiply_matrices )?| block \d+", "", span["name"])
        entry = times.setdefault((span["cat"], label), [0.0, 0, 0.0])
        entry[0] += span["dur"] / 1000
        entry[1] += 1
        entry[2] += span.get("args", {}).get("gflop", 0.0)
        if open_spans:
            open_spans[-1][2][0] -= span["dur"] / 1000
        open_spans.append((lane, end, entry))
    return times


def profile_lines(name, times, most=7):
    """The dearest spans of a step for people; products with their rate in TFLOP/s."""
    kinds = {}
    for (kind, _), (ms, _, _) in times.items():
        kinds[kind] = kinds.get(kind, 0.0) + ms
    parts = ", ".join(f"{kind} {ms:.1f}" for kind, ms in sorted(kinds.items(), key=lambda item: -item[1]))
    yield f"  {name}, one fenced step in ms: {parts}"
    dearest = sorted(((key, entry) for key, entry in times.items() if key[0] != "phase"), key=lambda item: -item[1][0])
    words = []
    for (_, label), (ms, calls, gflop) in dearest[:most]:
        rate = f" at {gflop / ms:.0f} TFLOP/s" if gflop and ms else ""
        words.append(f"{label} {ms:.2f} ({calls}){rate}")
    for i in range(0, len(words), 3):
        yield "    " + "; ".join(words[i : i + 3])


def measure(machine, clock, found, memory_mib, name, deck, case):
    """Measures a case: the time of a step, the memory used and planned, and the time line of one step."""
    overrides, label = overrides_for(machine, case), name.replace(" ", "_")
    trace = machine.work / f"{label}.trace.json"
    profiled = overrides | {"run.profile": trace, "run.profile_steps": f"{PROFILED}-{PROFILED}"}
    clock.require(10)
    planned = planned_mib(machine, label, deck, profiled, min(20, clock.left())) or 0
    if planned > memory_mib:
        found.leave_out(name, f"needs {planned:.0f} MiB")
        return
    with UsedMemory() as memory:
        training = train(machine, label, deck, profiled, min(100, clock.left()))
    if not found.check(name, training.is_complete(), training.done.how()):
        return
    steps = [step for step in training.steps if step["step"] >= WARM_UP and step["step"] < PROFILED]
    seconds = statistics.median(step["seconds"] for step in steps)
    tokens, mfu = steps[0]["tokens"] / seconds, statistics.median(step["mfu"] for step in steps)
    found.lines.append(
        f"  {name:<22}{seconds * 1e3:8.1f} ms {tokens / 1e3:8.1f} k tokens/s  MFU {100 * mfu:4.1f} %  memory "
        f"{memory.peak or 0:6d} MiB, planned {planned:6.0f}" + (f"; predicted {PREDICTED[name]}" if name in PREDICTED else "")
    )
    times = own_times(json.loads(trace.read_text())["traceEvents"]) if trace.exists() else {}
    if len(found.values) < 4:
        found.lines.extend(profile_lines(name, times))
    found.values[name] = {
        "seconds": seconds,
        "all_seconds": [step["seconds"] for step in training.steps],
        "mfu": mfu,
        "predicted": PREDICTED.get(name, ""),
        "memory_mib": memory.peak,
        "planned_mib": planned,
        "spans": [[kind, label, *entry] for (kind, label), entry in sorted(times.items(), key=lambda item: -item[1][0])],
    }


def head_lines(found):
    """The products of the head for three widths of the vocabulary: does one that 8 does not divide cost more?"""
    for name in ("124M 8x1024", "124M 8x1024 V 50264", "124M 8x1024 V 50304"):
        vocabulary = name.rpartition(" V ")[2] if " V " in name else "50257"
        spans = found.values.get(name, {}).get("spans", [])
        products = [
            (label, ms, gflop) for kind, label, ms, _, gflop in spans if kind == "product" and vocabulary in label.split()
        ]
        if products:
            rates = "; ".join(f"{label} {ms:.2f} ms, {gflop / ms:.0f} TFLOP/s" for label, ms, gflop in products if ms)
            yield f"  head, {vocabulary}: {rates}"


def speed(machine, clock, found):
    """Steps of several models, products of the head, and kernels one by one."""
    found.lines.append(f"speed, bf16, steps {WARM_UP} to {PROFILED - 1} of {STEPS}, MFU of {PEAK_TFLOPS} TFLOP/s:")
    memory_mib = device_mib(machine)
    for name, deck, case in CASES:
        measure(machine, clock, found, memory_mib, name, deck, case)
        if name.endswith("V 50304"):
            found.lines.extend(head_lines(found))
    for path in sorted((machine.bundle / "decks").glob("gpu/*.toml")):
        measure(
            machine, clock, found, memory_mib, path.stem, f"gpu/{path.name}", {"checkpoint.folder": "", "checkpoint.every": 0}
        )
    if machine.has("kernel_benchmark"):
        clock.require(10)
        done = machine.run("kernel_benchmark", machine.command("kernel_benchmark"), min(90, clock.left()))
        found.check("kernel_benchmark", done.code == 0, done.how())
        found.values["kernel_benchmark"] = done.text().splitlines()
        found.lines += [f"  {line.strip()}" for line in done.text().splitlines()[-11:]]
