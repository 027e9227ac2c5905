#!/usr/bin/env python3
"""How a step's time grows with ranks and with the model: small30m, every ZeRO stage.

    python3 growth.py --kzero build/release/kzero [--precision fp32] [--ranks 1 2 4] [--times 1 2 4 8]

Ranks share a step of eight sequences, two a micro-batch: with as many ranks as cores the ideal is the inverse of their
number, and no less with more. The model grows by its layers, on one rank: the ideal is the time that its operations take
at the smallest one's rate. One thread a rank; a figure is the median of the steps after the first two.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

from compare import ROOT, VOCAB, read_metrics, write_tokens

LAYERS = 8  # of small30m


def run(arguments, ranks, changes, folder):
    """The median seconds and operations a second (TFLOP/s) of a rank."""
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    command = [
        "mpiexec",
        "-n",
        str(ranks),
        arguments.kzero,
        "train",
        "input/small30m.toml",
        "data.format=llmc",
        f"data.files={folder}/tokens.bin",
        f"train.precision={arguments.precision}",
        "train.micro_batch=2",
        "train.steps=6",
        f"run.metrics={metrics}",
        *changes,
    ]
    environment = dict(os.environ, OMP_NUM_THREADS="1", OMP_PROC_BIND="false")
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    steps = read_metrics(metrics)[1][2:]
    return statistics.median(s["seconds"] for s in steps), statistics.median(s["mfu"] for s in steps)


def grow_ranks(arguments, folder):
    cores = os.cpu_count()
    print(f"| zero.stage | {' | '.join(f'{n} ranks' for n in arguments.ranks)} |\n|---{'|---' * len(arguments.ranks)}|")
    for stage in range(4):
        cells, one = [], None
        for ranks in arguments.ranks:
            seconds, _ = run(arguments, ranks, ["train.global_batch=8", f"zero.stage={stage}"], folder)
            one = one or seconds * min(ranks, cores)
            cells.append(f"{seconds:.2f} s, {one / seconds / min(ranks, cores):.2f} of ideal")
        print(f"| {stage} | {' | '.join(cells)} |", flush=True)


def grow_model(arguments, folder):
    print("\n| layers | step, s | of the smallest one's rate |\n|---|---|---|")
    first = None
    for times in arguments.times:
        seconds, mfu = run(arguments, 1, ["train.global_batch=2", f"model.layers={LAYERS * times}"], folder)
        first = first or mfu
        print(f"| {LAYERS * times} | {seconds:.2f} | {mfu / first:.3f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--times", nargs="+", type=int, default=[1, 2, 4, 8])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_tokens(pathlib.Path(folder) / "tokens.bin", VOCAB["small30m"])
        grow_ranks(arguments, pathlib.Path(folder))
        grow_model(arguments, pathlib.Path(folder))


if __name__ == "__main__":
    main()
