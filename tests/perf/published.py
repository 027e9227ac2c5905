#!/usr/bin/env python3
"""Published training runs as `kzero plan --rates` predicts them, in tokens a second and GPU.

    python3 tests/perf/published.py [--kzero build/release/kzero]
    python3 tests/perf/published.py --fit h100

The first prints the tables of tests/perf/published_tables.md. The second prints the shares for [attained] of a rates file at which
the runs that are marked as fitted come out as printed, one run for each width; everything else is predicted.
published_runs.csv has the runs; a family has the name of its rates file. Of a run with a pipeline, one stage is planned; the time in
which its GPUs wait for other stages follows from the numbers of stages and micro-batches.
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
    "megatron_h100": "Megatron on H100, without pipelines",
    "megatron_h100_175b": "Megatron on H100, 175B in 12 stages",
    "llama3_h100": "Llama 3 405B on H100 in 16 stages",
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
MEGATRON = {"1.7b": (24, 2048, 16), "7b": (30, 4096, 32), "16b": (32, 6144, 48), "175b": (96, 12288, 96)}
# And feed-forward width. 405B has 126 blocks: of 16 stages, the first and the last have 7, the others 8.
LLAMA = {"8b": (32, 4096, 32, 14336), "70b": (80, 8192, 64, 28672), "405b": (128, 16384, 128, 53248)}


@dataclass(frozen=True)
class Run:
    family: str
    model: str
    gpus: int
    tensor: int
    pipeline: int
    sequence: int
    micro_batch: int
    global_batch: int
    recompute: str
    printed: float  # tokens a second and GPU
    fitted: bool

    def shape(self):
        """The deck and the shape of its model: of one pipeline stage, with a part of the vocabulary."""
        kind, size = self.model.split("-")
        layers, hidden, heads, *feed_forward = {"mpt": MPT, "megatron": MEGATRON, "llama": LLAMA}[kind][size]
        vocab = {"mpt": 50368, "megatron": 131072, "llama": 128256}[kind]
        shape = {"layers": layers // self.pipeline, "hidden": hidden, "heads": heads, "vocab": vocab // self.pipeline}
        if kind == "llama":
            return "input/llama/llama-3.1-8b.toml", shape | {"feed_forward": feed_forward[0]}
        if kind == "megatron":
            shape |= {"tied_embeddings": "false", "sequence_parallel": str(self.tensor > 1).lower()}
        return "input/gpt2-124m.toml", shape

    @property
    def reduces_once(self):
        """Whether the optimizer's state is sharded and gradients are accumulated locally; otherwise FSDP."""
        return self.family in ("megatron_h100", "megatron_h100_175b", "llama3_h100")

    def rounds(self):
        """Micro-batches of a rank."""
        return self.global_batch * self.tensor * self.pipeline // self.gpus // self.micro_batch

    def bubble(self):
        """The time of a pipeline over that of its stages, each block in turn on the next stage (Narayanan et al., 2104.04473)."""
        layers = self.shape()[1]["layers"]
        return 1 + (self.pipeline - 1) / (layers * self.rounds())

    def settings(self):
        deck, shape = self.shape()
        overrides = {f"model.{key}": value for key, value in shape.items()} | {
            "model.sequence": self.sequence,
            "grid.tensor": self.tensor,
            "zero.stage": 1 if self.reduces_once else 3,
            "zero.accumulate": "local" if self.reduces_once else "reduced",
            "zero.reduction": "library",
            "run.communicator": "nccl",
            "recompute.mode": self.recompute,
            "train.precision": "bf16",
            "train.global_batch": self.global_batch,
            "train.micro_batch": self.micro_batch,
        }
        # Megatron's runs have --tp-comm-overlap: its README.
        overlap = ["--tensor-overlap"] if self.family.startswith("megatron") else []
        return [deck, *settings(overrides), "--ranks", str(self.gpus // self.pipeline), *overlap]


def read_runs():
    with open(Path(__file__).parent / "published_runs.csv") as file:
        for row in csv.DictReader(file):
            numbers = {
                name: int(row[name]) for name in ("gpus", "tensor", "pipeline", "sequence", "micro_batch", "global_batch")
            }
            yield Run(**row | numbers | {"printed": float(row["printed"]), "fitted": row["fitted"] == "yes"})


RUNS = tuple(read_runs())


def rates_of(family):
    """The rates file of a family: its own, or that of llm-foundry's runs on the same GPU."""
    return RATES / f"{family if (RATES / f'{family}.toml').exists() else 'h100'}.toml"


def predict(kzero, runs=RUNS, rates=None):
    """Tokens a second and GPU of each run. rates: a file in place of the family's."""
    found = plans(kzero, runs, lambda run: rates or rates_of(run.family))
    return [plan["tokens_per_second"] / run.bubble() / run.gpus for run, plan in zip(runs, found)]


def table(family, predicted):
    """A family's table, with the errors of the runs that were not fitted above it."""
    of_family = [(run, value) for run, value in zip(RUNS, predicted) if run.family == family]
    errors = [abs(error(run, value)) for run, value in of_family if not run.fitted]
    lines = [
        f"{FAMILIES[family]}: {len(errors)} runs predicted, median error {100 * median(errors):.1f} %, largest {100 * max(errors):.1f} %",
        "",
        "| model | GPUs | tensor | pipeline | micro-batch | rounds | recomputed | printed | predicted | error |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for run, value in of_family:
        marked = "fitted" if run.fitted else f"{100 * error(run, value):+.1f} %"
        lines.append(
            f"| {run.model} | {run.gpus} | {run.tensor} | {run.pipeline} | {run.micro_batch} | {run.rounds()} | {run.recompute} "
            f"| {run.printed:,.0f} | {value:,.0f} | {marked} |"
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
    parser.add_argument("--fit", choices=[family for family in FAMILIES if rates_of(family).stem == family])
    arguments = parser.parse_args()
    kzero = Path(arguments.kzero).resolve()
    if arguments.fit:
        fit(kzero, arguments.fit)
    else:
        print(tables(predict(kzero)))


if __name__ == "__main__":
    main()
