#!/usr/bin/env python3
"""Whether the first proposal of `kzero plan --search` is the fastest way to train on the ranks of this machine.

    python3 tests/perf/search.py [--kzero build/release/kzero] [--models gpt2 llama wide] [--ranks 4] [--rounds 6] [--seconds 3]

For each model, `kzero plan --search` measures this machine's rates and proposes settings. The first proposal and nine others are
run in turns, there and back: the next four, four from the rest of the list at even distances, and the first with micro-batches of
half the size.
A run's figure is the median of its steps. The table has the median of the rounds and the range of all. A proposal ties with the
first if it is faster in some rounds and slower in others.
"""

import argparse
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from statistics import median

from compare import read_metrics
from planned_runs import ROOT, settings

WARM_UP = 2  # steps left out
NEXT, SPREAD = 4, 4  # proposals after the first, and from the rest of the list


@dataclass(frozen=True)
class Model:
    deck: str
    memory: str  # of a rank, for --fit
    overrides: dict = field(default_factory=dict)

    def arguments(self):
        always = {
            "train.validate_every": 0,
            "optimizer.warmup": 0,
            "checkpoint.folder": "",
            "checkpoint.every": 0,
            "run.log_every": 1,
            "run.peak_tflops": 1,  # is not measured then
        }
        return [self.deck, *settings(self.overrides | always)]


MODELS = {
    "gpt2": Model("input/quickstart.toml", "1GiB", {"train.global_batch": 32}),
    "llama": Model("input/llama/small.toml", "1GiB", {"train.global_batch": 32}),
    # 6.4 M parameters, whose states do not fit in stage 0
    "wide": Model(
        "input/quickstart.toml", "96MiB", {"train.global_batch": 16, "model.layers": 2, "model.hidden": 512, "model.heads": 8}
    ),
}


@dataclass
class Candidate:
    settings: list
    predicted: float  # tokens a second of all ranks
    step: float  # seconds, predicted
    measured: list = field(default_factory=list)  # tokens a second of each round

    def median(self):
        return median(self.measured)


def plan(arguments, model, *options):
    command = [arguments.kzero, "plan", *model.arguments(), "--ranks", str(arguments.ranks), "--json", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def candidate(planned, chosen):
    return Candidate(
        settings({key: json.dumps(value) if isinstance(value, bool) else value for key, value in chosen.items()}),
        planned["tokens_per_second"],
        planned["step_seconds_estimate"],
    )


def candidates(arguments, model):
    """The first proposal and nine others, and how many there are."""
    proposals = plan(arguments, model, "--search", "--fit", model.memory)
    rest = proposals[1 + NEXT :]
    last = len(rest) - 1
    spread = [rest[number] for number in sorted({round(i * last / (SPREAD - 1)) for i in range(SPREAD)})] if rest else []
    found = [candidate(one, one["settings"]) for one in (*proposals[: 1 + NEXT], *spread)]
    first = proposals[0]
    half = first["settings"]["train.micro_batch"] // 2
    if half:
        chosen = first["settings"] | {"train.micro_batch": half}
        # Planned with rates measured again, so that only its settings are used.
        found.append(Candidate(candidate(first, chosen).settings, float("nan"), first["step_seconds_estimate"]))
    return found, len(proposals)


def run(arguments, model, one, folder):
    """Tokens a second of a run, the median of its steps."""
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    steps = WARM_UP + max(5, ceil(arguments.seconds / one.step))
    command = ["mpiexec", "-n", str(arguments.ranks), arguments.kzero, "train", *model.arguments(), *one.settings]
    command += [f"train.steps={steps}", f"run.metrics={metrics}"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return median(step["tokens_per_second"] for step in read_metrics(metrics)[1][WARM_UP:])


def compared(first, other):
    """Compares with another proposal by the rounds in which both ran in turns."""
    ratios = [b / a for a, b in zip(first.measured, other.measured)]
    if min(ratios) > 1:
        return "faster"
    return "slower" if max(ratios) < 1 else "tie"


def report(name, all_candidates, proposals):
    first = all_candidates[0]
    print(f"\n{name}: {len(all_candidates)} of {proposals} proposals, {len(first.measured)} rounds\n")
    print("| | settings | predicted, tokens/s | measured | rounds | of the first | |\n|---|---|---|---|---|---|---|")
    for number, one in enumerate(all_candidates, 1):
        predicted = "" if one.predicted != one.predicted else f"{one.predicted:.0f}"
        print(
            f"| {number} | {' '.join(one.settings)} | {predicted} | {one.median():.0f} "
            f"| {min(one.measured):.0f} to {max(one.measured):.0f} | {one.median() / first.median():.3f} "
            f"| {'' if one is first else compared(first, one)} |"
        )
    faster = [number for number, one in enumerate(all_candidates, 1) if compared(first, one) == "faster"]
    ties = [number for number, one in enumerate(all_candidates[1:], 2) if compared(first, one) == "tie"]
    spread = max((max(one.measured) - min(one.measured)) / one.median() for one in all_candidates)
    verdict = f"faster than the first: {faster}" if faster else "the first is the fastest"
    print(
        f"\n{verdict}{f', tied with {ties}' if ties else ''}; rounds of one proposal differ by up to {100 * spread:.1f} %",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", default=ROOT / "build/release/kzero", type=Path)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=3, help="of a run")
    arguments = parser.parse_args()
    arguments.kzero = str(arguments.kzero.resolve())
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models:
            model = MODELS[name]
            found, proposals = candidates(arguments, model)
            for number in range(arguments.rounds):
                for one in found if number % 2 == 0 else reversed(found):  # a machine that drifts drifts for both
                    one.measured.append(run(arguments, model, one, Path(folder)))
            report(name, found, proposals)


if __name__ == "__main__":
    main()
