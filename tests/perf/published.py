#!/usr/bin/env python3
"""Published training runs as `kzero plan --rates` predicts them, in tokens a second and GPU.

    python3 tests/perf/published.py [--kzero build/release/kzero]
    python3 tests/perf/published.py --fit h100

The first prints the tables of tests/perf/published_tables.md. The second prints the shares for [attained] of a rates file at which
the runs that are marked as fitted come out as printed, one run for each width; everything else is predicted.
published_runs.csv has the runs; a family has the name of its rates file.
"""

import argparse
import csv
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from planned_runs import ROOT, error, plans, settings

RATES = ROOT / "input/rates"
FAMILIES = {
    "a100_40gb": "llm-foundry on A100 of 40 GB",
    "a100_80gb": "llm-foundry on A100 of 80 GB",
    "h100": "llm-foundry on H100",
    "h100_500w": "torchtitan with torch.compile on H100 of 500 W",
}
MPT = {  # layers, hidden, heads
    "125m": (12, 768, 12),
    "350m": (24, 1024, 16),
    "760m": (24, 1536, 12),
    "1b": (24, 2048, 16),
    "3b": (32, 2560, 20),
    "7b": (32, 4096, 32),
    "13b": (40, 5120, 40),
    "30b": (48, 7168, 56),
    "70b": (80, 8192, 64),
}
LLAMA_70B = ("model.layers=80", "model.hidden=8192", "model.heads=64", "model.feed_forward=28672")


@dataclass(frozen=True)
class Run:
    family: str
    model: str
    gpus: int
    tensor: int
    sequence: int
    micro_batch: int
    global_batch: int
    recompute: str
    printed: float  # tokens a second and GPU
    fitted: bool

    def deck(self):
        kind, size = self.model.split("-")
        if kind == "llama":
            return ["input/llama/llama-3.1-8b.toml", *(LLAMA_70B if size == "70b" else ())]
        layers, hidden, heads = MPT[size]
        shape = (f"model.layers={layers}", f"model.hidden={hidden}", f"model.heads={heads}", "model.vocab=50368")
        return ["input/gpt2-124m.toml", *shape]

    def settings(self):
        overrides = {
            "model.sequence": self.sequence,
            "grid.tensor": self.tensor,
            "zero.stage": 3,
            "zero.reduction": "library",
            "run.communicator": "nccl",
            "recompute.mode": self.recompute,
            "train.precision": "bf16",
            "train.global_batch": self.global_batch,
            "train.micro_batch": self.micro_batch,
        }
        return [*self.deck(), *settings(overrides), "--ranks", str(self.gpus)]


def read_runs():
    with open(Path(__file__).parent / "published_runs.csv") as file:
        for row in csv.DictReader(file):
            numbers = {name: int(row[name]) for name in ("gpus", "tensor", "sequence", "micro_batch", "global_batch")}
            yield Run(**row | numbers | {"printed": float(row["printed"]), "fitted": row["fitted"] == "yes"})


RUNS = tuple(read_runs())


def predict(kzero, runs=RUNS, rates=None):
    """Tokens a second and GPU of each run. rates: a file in place of the family's."""
    found = plans(kzero, runs, lambda run: rates or RATES / f"{run.family}.toml")
    return [plan["tokens_per_second"] / run.gpus for run, plan in zip(runs, found)]


def table(family, predicted):
    """A family's table, with the errors of the runs that were not fitted above it."""
    of_family = [(run, value) for run, value in zip(RUNS, predicted) if run.family == family]
    errors = [abs(error(run, value)) for run, value in of_family if not run.fitted]
    lines = [
        f"{FAMILIES[family]}: {len(errors)} runs predicted, median error {100 * median(errors):.1f} %, largest {100 * max(errors):.1f} %",
        "",
        "| model | GPUs | tensor | micro-batch | rounds | recomputed | printed | predicted | error |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for run, value in of_family:
        rounds = run.global_batch * run.tensor // run.gpus // run.micro_batch
        marked = "fitted" if run.fitted else f"{100 * error(run, value):+.1f} %"
        lines.append(
            f"| {run.model} | {run.gpus} | {run.tensor} | {run.micro_batch} | {rounds} | {run.recompute} | {run.printed:,.0f} | "
            f"{value:,.0f} | {marked} |"
        )
    return "\n".join(lines)


def tables(predicted):
    return "\n\n".join(table(family, predicted) for family in FAMILIES)


def fit(kzero, family):
    """The shares at which the fitted runs come out as printed."""
    text = (RATES / f"{family}.toml").read_text()
    shares = tomllib.loads(text)["attained"]
    runs = [run for run in RUNS if run.family == family and run.fitted]
    width = {run: str(MPT[run.model.split("-")[1]][1] if run.model.startswith("mpt") else 4096) for run in runs}
    if sorted(width.values()) != sorted(shares):
        sys.exit(f"published.py: {family}: fitted runs have the widths {sorted(width.values())}, the file {sorted(shares)}")
    other = text[: text.index("[attained]")] + text[text.index("[node]") :]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rates.toml"
        for _ in range(6):  # time is nearly in proportion to a share
            file.write_text(other + "\n[attained]\n" + "".join(f"{key} = {value}\n" for key, value in shares.items()))
            for run, value in zip(runs, predict(kzero, runs, file)):
                shares[width[run]] *= run.printed / value
    print("\n".join(f"{key} = {value:.3f}" for key, value in shares.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", default=ROOT / "build/release/kzero")
    parser.add_argument("--fit", choices=FAMILIES)
    arguments = parser.parse_args()
    kzero = Path(arguments.kzero).resolve()
    if arguments.fit:
        fit(kzero, arguments.fit)
    else:
        print(tables(predict(kzero)))


if __name__ == "__main__":
    main()
