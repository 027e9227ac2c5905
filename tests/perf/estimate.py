#!/usr/bin/env python3
"""The time of a step that `kzero plan` estimates, compared with the measured one.

    python3 estimate.py --kzero build/release/kzero [--configs tiny small30m gpt2-124m] [--precisions fp32 bf16]

One rank of one thread. Each case is estimated before and after its run, as a machine drifts; a run's figure is the median
of its steps.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from compare import ROOT, VOCAB, WARM_UP, read_metrics, training_command, write_tokens


def estimate(arguments, environment):
    """Seconds; the arguments are those of a launch of kzero train."""
    command = [*arguments[:1], "plan", *arguments[2:], "--json"]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)[0]["step_seconds_estimate"]


def measure(launch, metrics, environment):
    metrics.unlink(missing_ok=True)
    subprocess.run([*launch, f"run.metrics={metrics}"], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    return statistics.median(step["seconds"] for step in read_metrics(metrics)[1][WARM_UP:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--configs", nargs="+", default=list(VOCAB), choices=VOCAB)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    arguments = parser.parse_args()
    environment = dict(os.environ, OMP_NUM_THREADS="1", OMP_PROC_BIND="false")
    print("| case | estimated before and after, s | measured, s | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for config in arguments.configs:
            tokens = pathlib.Path(folder) / f"{config}.bin"
            write_tokens(tokens, VOCAB[config])
            for precision in arguments.precisions:
                launch = training_command(arguments.kzero, config, precision, 1, tokens)
                program = launch[launch.index(arguments.kzero) :] + ["grid.data=1"]
                before = estimate(program, environment)
                seconds = measure(launch, pathlib.Path(folder) / "metrics.jsonl", environment)
                after = estimate(program, environment)
                print(
                    f"| {config} {precision} | {before:.3f}, {after:.3f} | {seconds:.3f} "
                    f"| {(before + after) / 2 / seconds:.3f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
