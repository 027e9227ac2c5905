#!/usr/bin/env python3
"""Time per step of ZeRO stages 1, 2 and 3 relative to stage 0, with and without overlap, in turns on the same cores.

    python3 tests/perf/stages.py [--kzero build/release/kzero] [--ranks 2] [--rounds 3] DECK [key=value ...]

Prints a Markdown table: the best round's median step of each case, and its ratio to stage 0 without overlap.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

from compare import read_metrics

WARM_UP = 2  # steps left out


def median_step(arguments, stage, overlap):
    """Seconds of a step, the median of a run."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = pathlib.Path(folder, "metrics.jsonl")
        command = [
            "mpiexec",
            "-n",
            str(arguments.ranks),
            arguments.kzero,
            "train",
            arguments.deck,
            *arguments.overrides,
            f"zero.stage={stage}",
            f"zero.overlap={'on' if overlap else 'off'}",
            f"run.metrics={metrics}",
            "run.peak_tflops=1",
            "checkpoint.folder=",
            "checkpoint.every=0",
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return statistics.median(step["seconds"] for step in read_metrics(metrics)[1][WARM_UP:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("deck")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--kzero", default="build/release/kzero")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()

    cases = [(stage, overlap) for stage in range(4) for overlap in (False, True)]
    seconds = {case: [] for case in cases}
    for _ in range(arguments.rounds):
        for case in cases:
            seconds[case].append(median_step(arguments, *case))
    base = min(seconds[0, False])
    print("| stage | overlap | ms a step | of stage 0 | rounds |\n|---|---|---|---|---|")
    for (stage, overlap), rounds in seconds.items():
        shown = ", ".join(f"{1e3 * s:.0f}" for s in rounds)
        print(f"| {stage} | {'yes' if overlap else 'no'} | {1e3 * min(rounds):.0f} | {min(rounds) / base:.2f} | {shown} |")


if __name__ == "__main__":
    main()
