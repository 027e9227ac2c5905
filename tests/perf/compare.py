#!/usr/bin/env python3
"""kzero's training speed compared with other trainers', in one sitting on one machine.

    VENV/bin/python compare.py --kzero build/release/kzero --peers DIR [--configs tiny small30m gpt2-124m]
               [--precisions fp32 bf16] [--rivals torch+compile ddp deepspeed0] [--rounds 3] [--limits FILE]

VENV has torch and deepspeed; DIR holds a rivals' benchmark: run.py with attempt(case, shim, options), whose cases it
tunes with a library made of mkl_avx512.c.
kzero runs the decks of input/ on two ranks of one thread and on one rank of two threads. Sides take turns, round by
round, so that a machine that drifts drifts for both. Prints a table: tokens/s of the best round (the median of its
steps) with the range of all, seconds from the launch to the end of the first step, resident memory.
FILE has what DIR's limits.cpp printed with one thread, of as many processes at once as there are cores: the time of a
step's matrix products alone, the best of the libraries it tries. Each trainer's step is then compared with that bound.
"""

import argparse
import json
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCAB = {"tiny": 256, "small30m": 8192, "gpt2-124m": 50257, "llama/30m": 8192, "llama/experts": 256}
PER_RANK = {"tiny": 8, "small30m": 4, "gpt2-124m": 1, "llama/30m": 4, "llama/experts": 2}  # sequences
RIVALS = ["tiny", "small30m", "gpt2-124m"]  # decks of GPT-2; compare_llama.py has rivals of the others
WARM_UP = 3  # steps left out of the median, as the rivals' benchmark does


def write_tokens(path, vocab, count=1 << 20, document=0):
    """A token file in llm.c's format. Token 0 ends documents of so many tokens on average; 0: it is as rare as others."""
    draw = random.Random(1)
    ends = 1 / document if document else 0
    with open(path, "wb") as file:
        file.write(struct.pack("<256i", 20240520, 1, count, *[0] * 253))
        file.write(struct.pack(f"<{count}H", *(0 if draw.random() < ends else draw.randrange(vocab) for _ in range(count))))


def training_command(binary, config, precision, ranks, tokens):
    """A launch of eight steps of kzero, from the project's folder."""
    return [
        "mpiexec",
        "-n",
        str(ranks),
        binary,
        "train",
        f"input/{config}.toml",
        f"train.precision={precision}",
        f"data.files={tokens}",
        "data.format=llmc",
        f"train.global_batch={PER_RANK[config] * ranks}",
        f"train.micro_batch={PER_RANK[config]}",
        "train.steps=8",
        "optimizer.warmup=0",
    ]


def read_metrics(path):
    """All records of a run, and those of its steps."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return records, [r for r in records if r["event"] == "step"]


def seconds_to_first_step(process, metrics, begin):
    """Waits for the process; returns when its first step was recorded, within some milliseconds."""
    first = None
    while process.poll() is None:
        if first is None and metrics.exists() and '"event":"step"' in metrics.read_text():
            first = time.time() - begin
        time.sleep(0.005 if first is None else 0.05)
    if process.returncode != 0:
        raise SystemExit(f"{process.args}: exit code {process.returncode}")
    return first


def run_kzero(binary, config, precision, ranks, tokens, folder):
    """The median tokens/s and MFU of a short run, its start and its largest resident size in MiB."""
    metrics = folder / "metrics.jsonl"
    metrics.unlink(missing_ok=True)
    command = [*training_command(binary, config, precision, ranks, tokens), f"run.metrics={metrics}"]
    environment = dict(os.environ, OMP_NUM_THREADS=str(max(1, os.cpu_count() // ranks)))
    begin = time.time()
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    first = seconds_to_first_step(process, metrics, begin)
    records, steps = read_metrics(metrics)
    steps = steps[WARM_UP:]
    resident = max(row["resident_peak_bytes"] for row in records[-1]["memory"])
    return {
        "tokens_per_s": statistics.median(s["tokens_per_second"] for s in steps),
        "startup_s": first,
        "mfu": statistics.median(s["mfu"] for s in steps),
        "peak_rss_mib": resident / 2**20,
    }


def run_rival(arguments, name, config, precision, folder):
    """The same of a rival: its ranks and threads are those of its kind."""
    sys.path.insert(0, arguments.peers)
    import run  # the rivals' own launcher, which knows their environments

    shim = folder / "mkl.so"
    if not shim.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, f"{arguments.peers}/mkl_avx512.c"], check=True)
    shape = "1x2" if name.startswith("torch") else "2x1"
    result = run.attempt((name, config, precision, shape, "tuned"), str(shim), [])
    if result is None:
        return None  # its error is on standard error
    memory = result["peak_rss_mib"]
    return dict(result, peak_rss_mib=max(memory) if isinstance(memory, list) else memory)


def bounds(file):
    """tokens/s that a step's matrix products alone would allow on all cores, by case and precision."""
    found = {}
    line = re.compile(r"(\S+) +(\d+) tokens .* (fp32|bf16) +best +([\d.]+) ms")
    for config, tokens, precision, milliseconds in line.findall(pathlib.Path(file).read_text()):
        rate = os.cpu_count() * int(tokens) / float(milliseconds) * 1e3
        # Where a processor has no bf16, products in fp32 are the faster way to it.
        for key in [(config, precision)] if precision == "bf16" else [(config, "fp32"), (config, "bf16")]:
            found[key] = max(rate, found.get(key, 0))
    return found


def compare(arguments, config, precision, folder):
    """Pairs of a name and its rounds' results of one case, the fastest first."""
    tokens = folder / f"{config}.bin"
    if not tokens.exists():
        write_tokens(tokens, VOCAB[config])
    rounds = {}
    for _ in range(arguments.rounds):
        for ranks in (2, 1):
            name = f"kzero {ranks} x {max(1, os.cpu_count() // ranks)}"
            rounds.setdefault(name, []).append(run_kzero(arguments.kzero, config, precision, ranks, tokens, folder))
        for name in arguments.rivals:
            rounds.setdefault(name, []).append(run_rival(arguments, name, config, precision, folder))
    complete = {name: [r for r in results if r is not None] for name, results in rounds.items()}
    return sorted(((n, r) for n, r in complete.items() if r), key=lambda row: -fastest(row[1]))


def fastest(results):
    return max(r["tokens_per_s"] for r in results)


def print_rows(case, rows, bound):
    """The case's lines of the table; `bound` is in tokens/s, or None."""
    rivals = [fastest(results) for name, results in rows if not name.startswith("kzero")]
    for name, results in rows:
        best, slowest = fastest(results), min(r["tokens_per_s"] for r in results)
        ratio = f"{best / max(rivals):.2f}" if rivals else ""
        start = statistics.median(r["startup_s"] for r in results)
        print(
            f"| {case} | {name} | {best:.0f} | {slowest:.0f} to {best:.0f} | {ratio} "
            f"| {bound / best if bound else 0:.2f} | {start:.1f} | {max(r['peak_rss_mib'] for r in results):.0f} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kzero", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--peers", required=True)
    parser.add_argument("--configs", nargs="+", default=RIVALS, choices=RIVALS)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--rivals", nargs="+", default=["torch+compile", "ddp", "deepspeed0", "deepspeed1"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limits")
    arguments = parser.parse_args()
    allowed = bounds(arguments.limits) if arguments.limits else {}
    print(
        "| case | trainer | tokens/s | rounds | of the best rival | step / bound | first step after s "
        "| peak resident MiB a rank |\n|---|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for config in arguments.configs:
            for precision in arguments.precisions:
                rows = compare(arguments, config, precision, pathlib.Path(folder))
                print_rows(f"{config} {precision}", rows, allowed.get((config, precision)))


if __name__ == "__main__":
    main()
