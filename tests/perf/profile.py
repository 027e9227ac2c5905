#!/usr/bin/env python3
"""Where a training step of kzero spends its time, kernel by kernel, compared with what the machine allows.

    python3 profile.py --build BUILD [--configs tiny small30m gpt2-124m llama/30m llama/experts] [--precisions fp32 bf16] [--ranks 1] [KEY=VALUE...]

BUILD: a build folder configured with -DKZERO_BENCHMARKS=ON. One thread a rank; the figures are rank 0's processor time
after three steps. Products are compared with the rate of the run's own product of 768 x 768 x 768, kernels that move
rows with numpy's copy of an array beyond the caches, attention by the products that its mask leaves with the former.
"""

import argparse
import glob
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import tomllib

import numpy
from compare import PER_RANK, ROOT, VOCAB, training_command, write_tokens


def copy_bytes_per_second():
    """Bytes read and written."""
    source, target = numpy.ones(1 << 25), numpy.zeros(1 << 25)
    best = float("inf")
    for _ in range(5):
        begin = time.thread_time()
        numpy.copyto(target, source)
        best = min(best, time.thread_time() - begin)
    return 2 * source.nbytes / best


def profile(arguments, config, precision, folder):
    """The tool's records of all ranks, the first rank's first, which is the one with the lowest process number."""
    tokens = folder / f"{config.replace('/', '_')}.bin"
    if not tokens.exists():
        write_tokens(tokens, VOCAB[config])
    for old in glob.glob(f"{folder}/profile.*"):
        os.remove(old)
    tool = pathlib.Path(arguments.build).resolve() / "tests/perf/libprofile_tool.so"
    environment = dict(
        os.environ, OMP_NUM_THREADS="1", OMP_PROC_BIND="false", KOKKOS_TOOLS_LIBS=str(tool), KZERO_PROFILE=f"{folder}/profile"
    )
    command = [*training_command(f"{arguments.build}/kzero", config, precision, arguments.ranks, tokens), *arguments.changes]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    files = sorted(glob.glob(f"{folder}/profile.*"), key=lambda name: int(name.rsplit(".", 1)[1]))
    return json.loads(pathlib.Path(files[0]).read_text())


def row_bytes(model, tokens, element):
    """The bytes that a call of each kernel over rows has to read and write, by a part of its label."""
    d = model["hidden"]
    f, v = model.get("feed_forward", 4 * d), model["vocab"]
    sums = (3 * d + d + f + d) / 4  # of the four biases of a block, on average
    return {
        "layernorm_forward": tokens * 2 * d * element,
        "layernorm_backward": tokens * 4 * d * element,
        "gelu_forward": tokens * 2 * f * element,
        "gelu_backward": tokens * 3 * f * element,
        "sum_rows": tokens * sums * element,
        "cross_entropy_with_gradient": tokens * v * (4 + element),
    }


def attention_operations(model, tokens):
    """Of the products of all heads that the causal mask leaves, forward; backward takes 2.5 times as many."""
    return 2 * 2 * tokens * model["sequence"] * model["hidden"] / 2


def rate(label, entry, limits, config, precision):
    """The rate that a kernel achieved, and its limit."""
    model = tomllib.loads((ROOT / f"input/{config}.toml").read_text())["model"]
    tokens = PER_RANK[config] * model["sequence"]
    gemm = re.match(r"kzero::tensor::multiply_matrices \w+ (\d+) (\d+) (\d+)", label)
    if gemm:
        m, n, k = map(int, gemm.groups())
        return 2 * m * n * k * entry["calls"] / entry["seconds"] / limits["product"], "of the product's rate"
    if "attention_" in label:
        operations = attention_operations(model, tokens) * (2.5 if "backward" in label else 1)
        return operations * entry["calls"] / entry["seconds"] / limits["product"], "of the product's rate"
    for part, size in row_bytes(model, tokens, 2 if precision == "bf16" else 4).items():
        if label.endswith(part):
            calls = entry["calls"] if part != "cross_entropy_with_gradient" else limits["steps"]  # all chunks are one pass
            return size * calls / entry["seconds"] / limits["copy"], "of copy"
    return None, ""


def report(record, config, precision, copy):
    entries = record["in_steps"]
    total = sum(e["seconds"] for e in entries.values())
    product = min(e["fastest"] for label, e in record["outside"].items() if label.endswith("768 768 768 NN"))
    limits = {"product": 2 * 768**3 / product, "copy": copy, "steps": record["steps"]}
    print(
        f"\n{config} {precision}: {total / record['steps'] * 1e3:.1f} ms a step; product {limits['product'] / 1e9:.0f} GFLOP/s, "
        f"copy {copy / 1e9:.1f} GB/s"
    )
    for label, entry in sorted(entries.items(), key=lambda item: -item[1]["seconds"]):
        share = entry["seconds"] / total
        if share < 0.002:
            break
        achieved, unit = rate(label, entry, limits, config, precision)
        text = f"{achieved:6.2f} {unit}" if achieved else ""
        name = "the rest of the step" if label == "kzero::engine::step" else re.sub("^kzero::(tensor|kernels)::", "", label)
        print(
            f"  {share:6.1%} {entry['seconds'] / record['steps'] * 1e3:9.2f} ms {entry['calls'] / record['steps']:6.0f} x  {name:48} {text}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--configs", nargs="+", default=["tiny", "small30m", "gpt2-124m"], choices=VOCAB)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("changes", nargs="*", help="keys of the deck")
    arguments = parser.parse_args()
    copy = copy_bytes_per_second()
    with tempfile.TemporaryDirectory() as folder:
        for config in arguments.configs:
            for precision in arguments.precisions:
                report(profile(arguments, config, precision, pathlib.Path(folder)), config, precision, copy)


if __name__ == "__main__":
    main()
