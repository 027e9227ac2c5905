#!/usr/bin/env python3
"""kzero's training speed beside other trainers', in one sitting on one machine.

    VENV/bin/python compare.py --kzero build/release/kzero --peers DIR [--configs tiny small30m gpt2-124m]
               [--precisions fp32 bf16] [--rivals torch+compile ddp deepspeed0] [--rounds 2]

VENV has torch and deepspeed; DIR holds a rivals' benchmark: run.py with attempt(case, shim, options), whose cases it
tunes with a library made of mkl_avx512.c.
kzero runs the decks of input/ on two ranks of one thread and on one rank of two threads. Sides take turns, round by
round, so that a machine that drifts drifts for both; each figure is the best median of its rounds. Prints a table.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCAB = {"tiny": 256, "small30m": 8192, "gpt2-124m": 50257}
PER_RANK = {"tiny": 8, "small30m": 4, "gpt2-124m": 1}  # sequences
WARM_UP = 3  # steps left out of the median, as the rivals' benchmark does


def write_tokens(path, vocab, count=1 << 20):
    """A token file in llm.c's format: speed depends on its size and vocabulary alone."""
    draw = random.Random(1)
    with open(path, "wb") as file:
        file.write(struct.pack("<256i", 20240520, 1, count, *[0] * 253))
        file.write(struct.pack(f"<{count}H", *(draw.randrange(vocab) for _ in range(count))))


def training_command(binary, config, precision, ranks, tokens):
    """A launch of eight steps of kzero, from the project's folder."""
    return ["mpiexec", "-n", str(ranks), binary, "train", f"input/{config}.toml", f"train.precision={precision}",
            f"data.files={tokens}", "data.format=llmc", f"train.global_batch={PER_RANK[config] * ranks}",
            f"train.micro_batch={PER_RANK[config]}", "train.steps=8"]


def run_kzero(binary, config, precision, ranks, tokens, folder):
    """The median tokens/s and MFU of a short run, and its largest resident size in MiB."""
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    command = [*training_command(binary, config, precision, ranks, tokens), f"run.metrics={metrics}"]
    environment = dict(os.environ, OMP_NUM_THREADS=str(max(1, os.cpu_count() // ranks)))
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    records = [json.loads(line) for line in metrics.read_text().splitlines()]
    steps = [r for r in records if r["event"] == "step"][WARM_UP:]
    resident = max(row["resident_peak_bytes"] for row in records[-1]["memory"])
    return {"tokens_per_s": statistics.median(s["tokens_per_second"] for s in steps),
            "mfu": statistics.median(s["mfu"] for s in steps), "peak_rss_mib": resident / 2**20}


def run_rival(arguments, name, config, precision, folder):
    """The same of a rival: its ranks and threads are those of its kind."""
    sys.path.insert(0, arguments.peers)
    import run  # the rivals' own launcher, which knows their environments
    shim = folder / "mkl.so"
    if not shim.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, f"{arguments.peers}/mkl_avx512.c"], check=True)
    shape = "1x2" if name.startswith("torch") else "2x1"
    result = run.attempt((name, config, precision, shape, "tuned"), str(shim), [])
    memory = result["peak_rss_mib"]
    return dict(result, peak_rss_mib=max(memory) if isinstance(memory, list) else memory)


def better(best, new):
    return new if best is None or new["tokens_per_s"] > best["tokens_per_s"] else best


def compare(arguments, config, precision, folder):
    """Rows (name, result) of both sides for one case, the fastest first."""
    tokens = folder / f"{config}.bin"
    if not tokens.exists():
        write_tokens(tokens, VOCAB[config])
    best = {}
    for _ in range(arguments.rounds):
        for ranks in (2, 1):
            name = f"kzero {ranks} x {max(1, os.cpu_count() // ranks)}"
            best[name] = better(best.get(name), run_kzero(arguments.kzero, config, precision, ranks, tokens, folder))
        for name in arguments.rivals:
            best[name] = better(best.get(name), run_rival(arguments, name, config, precision, folder))
    return sorted(best.items(), key=lambda row: -row[1]["tokens_per_s"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--peers", required=True)
    parser.add_argument("--configs", nargs="+", default=list(VOCAB), choices=VOCAB)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--rivals", nargs="+", default=["torch+compile", "ddp", "deepspeed0", "deepspeed1"])
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    print("| case | trainer | tokens/s | of the best rival | MFU | peak resident MiB a rank |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for config in arguments.configs:
            for precision in arguments.precisions:
                rows = compare(arguments, config, precision, pathlib.Path(folder))
                rival = max(r["tokens_per_s"] for name, r in rows if not name.startswith("kzero"))
                for name, r in rows:
                    mfu = f"{100 * r['mfu']:.0f} %" if "mfu" in r else ""
                    print(f"| {config} {precision} | {name} | {r['tokens_per_s']:.0f} | {r['tokens_per_s'] / rival:.2f} "
                          f"| {mfu} | {r['peak_rss_mib']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
