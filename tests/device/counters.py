"""Nsight Compute's counters of single kernels: which share of the memory's rate and of the arithmetic's they reach."""

import csv

from sanitizer import find_tool
from training import overrides_of, settings

PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute")
# Parts of the kernels' names: a functor, or the function that has the lambda
KERNELS = {
    "cross_entropy_with_gradient": "with_gradient",
    "layernorm_backward": "::backward<",
    "layernorm_forward": "norm_forward<",
    "sum_rows": "sum_rows",
    "attention_forward": "WarpAttentionForward",
    "attention, queries' gradient": "WarpAttentionQueryGradient",
    "attention, keys' gradient": "WarpAttentionKeyGradient",
    "adamw": "AdamWStep",
    "sum_of_squares": "sum_of_squares",
    "gelu_forward": "gelu_forward",
}
METRICS = {
    "gpu__time_duration.sum": "us",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "% of memory",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "% of arithmetic",
    "launch__registers_per_thread": "registers",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "% occupied",
}
LAUNCHES = 150


def rows_of(text):
    """{kernel: {metric: the largest value}} of ncu's CSV, which other output precedes."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    found = {}
    for row in csv.DictReader(lines[first:]) if first is not None else ():
        name = next((name for name, part in KERNELS.items() if part in (row.get("Kernel Name") or "")), None)
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except (KeyError, AttributeError, ValueError):
            continue
        if row["Metric Name"] == "gpu__time_duration.sum":
            value *= {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}.get(
                row.get("Metric Unit"), 1
            )
        if name:
            entry = found.setdefault(name, {})
            entry[row["Metric Name"]] = max(value, entry.get(row["Metric Name"], 0.0))
    return found


def counters(machine, clock, found):
    tool = find_tool("ncu", PLACES)
    if tool is None:
        found.leave_out("ncu", "is not on this machine")
        return
    keys = overrides_of(machine.bundle, "bf16") | {
        "train.steps": 1,
        "train.global_batch": 8,
        "train.micro_batch": 8,
        "model.layers": 2,
        "run.attention": "kzero",
    }
    wrapper = [tool, "--clock-control", "none", "--target-processes", "all", "--csv", "--kernel-name-base", "demangled"]
    wrapper += [
        "--kernel-name",
        f"regex:{'|'.join(KERNELS.values())}",
        "--launch-count",
        LAUNCHES,
        "--metrics",
        ",".join(METRICS),
    ]
    command = machine.command("kzero", "train", machine.bundle / "decks/gpt2-124m.toml", *settings(keys))
    done = machine.run("ncu", command, clock.left(), wrapper)
    rows = rows_of(done.text())
    if not found.check("ncu", bool(rows), done.how() if not rows else f"counters of {len(rows)} kernels"):
        return
    found.values.update(rows)
    for name, metrics in rows.items():
        shown = ", ".join(f"{metrics[key]:.1f} {unit}" for key, unit in METRICS.items() if key in metrics)
        found.lines.append(f"  {name:<28}{shown}")
