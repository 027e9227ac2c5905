#!/usr/bin/env python3
"""The rate of one step on more and more threads of a rank, and on all cores as ranks x threads.

    python3 threads.py --kzero build/release/kzero [--configs small30m] [--precisions fp32 bf16] [--cores N] [--rounds 2]

Every run of a deck computes the same step: N cores x the sequences of a micro-batch in compare.py, in micro-batches of
at most that many. The runs take turns; each figure is the best median of its rounds. "of one thread" is the rate over
that of one thread times the number of threads. Ranks are bound to their cores by MPICH's mpiexec. Memory is touched
first by the threads that use it, so run on one NUMA domain and on several to see what a remote one costs.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile

from compare import PER_RANK, ROOT, VOCAB, WARM_UP, read_metrics, write_tokens


def powers_of_two(limit):
    return [2**i for i in range(limit.bit_length())]


def shapes(cores):
    """Pairs of ranks and threads: one rank with more and more threads, then all cores divided."""
    return list(dict.fromkeys([(1, t) for t in powers_of_two(cores)] + [(r, cores // r) for r in powers_of_two(cores)]))


def run(arguments, config, precision, shape, folder):
    """The median tokens/s."""
    ranks, threads = shape
    tokens, metrics = folder / "tokens.bin", folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    batch = PER_RANK[config] * arguments.cores
    changes = {
        "train.precision": precision,
        "train.global_batch": batch,
        "train.micro_batch": min(PER_RANK[config], batch // ranks),
        "train.steps": 6,
        "optimizer.warmup": 0,
        "train.validate_every": 0,
        "data.files": tokens,
        "data.format": "llmc",
        "checkpoint.folder": "",
        "run.metrics": metrics,
        "run.peak_tflops": 1,
    }
    command = ["mpiexec", "-n", str(ranks), "-bind-to", f"core:{threads}", arguments.kzero, "train", f"input/{config}.toml"]
    subprocess.run(
        command + [f"{key}={value}" for key, value in changes.items()],
        cwd=ROOT,
        env=dict(os.environ, OMP_NUM_THREADS=str(threads)),
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return statistics.median(s["tokens_per_second"] for s in read_metrics(metrics)[1][WARM_UP:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", type=lambda path: str(pathlib.Path(path).resolve()), required=True)
    parser.add_argument("--configs", nargs="+", default=["small30m"], choices=VOCAB)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    print("| case | ranks x threads | tokens/s | of one thread |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for config in arguments.configs:
            write_tokens(pathlib.Path(folder) / "tokens.bin", VOCAB[config])
            for precision in arguments.precisions:
                best = {}
                for _ in range(arguments.rounds):
                    for shape in shapes(arguments.cores):
                        rate = run(arguments, config, precision, shape, pathlib.Path(folder))
                        best[shape] = max(rate, best.get(shape, 0))
                for (ranks, threads), rate in best.items():
                    share = rate / best[1, 1] / (ranks * threads)
                    print(f"| {config} {precision} | {ranks} x {threads} | {rate:.0f} | {share:.2f} |", flush=True)


if __name__ == "__main__":
    main()
