#!/usr/bin/env python3
"""Where a training step of kzero spends its time, kernel by kernel, compared with what the machine allows.

    python3 profile.py --build BUILD [--configs tiny small30m gpt2-124m llama/30m llama/experts] [--precisions fp32 bf16]
               [--variants plain packed windows lora] [--ranks 1] [KEY=VALUE...]

BUILD: a build folder configured with -DKZERO_BENCHMARKS=ON. One thread a rank; the figures are rank 0's processor time
after three steps. Products are compared with the rate of the run's own product of 768 x 768 x 768, kernels that move
rows with numpy's copy of an array beyond the caches, attention by the products that its mask leaves with the former.
Variants: packed documents of 128 tokens on average, windows of 128 tokens in all layers, adapters of rank 16 of all linear
layers. KEY=VALUE changes the deck.
"""

import argparse
import glob
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import tomllib

import numpy
from compare import PER_RANK, ROOT, VOCAB, training_command, write_tokens

DOCUMENT, WINDOW = 128, 128  # tokens
# Of the first group whose expression is found in a kernel's label it is a part.
GROUPS = {
    "products": "multiply_|expert_products|expert_gradients",
    "attention": "attention_",
    "copies, rounding": "copy_|round_|prepare_output",
    "norms": "norm",
    "activations": "gelu|swiglu|geglu|xielu",
    "loss": "cross_entropy",
    "optimizer": "update_elements|sum_of_squares",
    "sums of rows": "sum_rows|sum_groups",
}


def copy_bytes_per_second():
    """Bytes read and written."""
    source, target = numpy.ones(1 << 25), numpy.zeros(1 << 25)
    best = float("inf")
    for _ in range(5):
        begin = time.thread_time()
        numpy.copyto(target, source)
        best = min(best, time.thread_time() - begin)
    return 2 * source.nbytes / best


def initial_weights(arguments, config, folder, command):
    """A folder of Hugging Face's with the weights of a checkpoint after one step."""
    checkpoint, weights = folder / "checkpoint", folder / f"weights_{config.replace('/', '_')}"
    if not weights.exists():
        short = [
            *(word for word in command if not word.startswith("train.steps=")),
            "train.steps=1",
            f"checkpoint.folder={checkpoint}",
        ]
        for step in [short, [f"{arguments.build}/kzero", "convert", checkpoint, weights]]:
            subprocess.run(step, cwd=ROOT, env=dict(os.environ, OMP_NUM_THREADS="1"), check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(checkpoint)
    return weights


def launch(arguments, config, precision, variant, folder):
    """The command of a variant."""
    document = DOCUMENT if variant == "packed" else 0
    tokens = folder / f"{config.replace('/', '_')}_{document}.bin"
    if not tokens.exists():
        write_tokens(tokens, VOCAB[config], document=document)
    command = [
        *training_command(f"{arguments.build}/kzero", config, precision, arguments.ranks, tokens),
        "run.metrics=",
        *arguments.changes,
    ]
    if variant == "packed":
        command.append("data.end_token=0")
    if variant == "windows":
        command.append(f"model.window={WINDOW}")
    if variant == "lora":
        weights = initial_weights(arguments, config, folder, command)
        command += ["lora.rank=16", 'lora.targets=["all-linear"]', f"model.initial={weights}"]
    return command


def profile(arguments, config, precision, variant, folder):
    """The tool's records of all ranks, the first rank's first, which is the one with the lowest process number."""
    command = launch(arguments, config, precision, variant, folder)
    for old in glob.glob(f"{folder}/profile.*"):
        os.remove(old)
    tool = pathlib.Path(arguments.build) / "tests/perf/libprofile_tool.so"
    environment = dict(
        os.environ, OMP_NUM_THREADS="1", OMP_PROC_BIND="false", KOKKOS_TOOLS_LIBS=str(tool), KZERO_PROFILE=f"{folder}/profile"
    )
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


def keys_of_a_query(model, variant):
    """How many keys a query sees on average."""
    t = numpy.arange(1, model["sequence"] + 1)
    if variant == "windows":
        return numpy.minimum(t, WINDOW).mean()
    if variant == "packed":  # the probability that no document ended in between, for each distance
        return (DOCUMENT * (1 - (1 - 1 / DOCUMENT) ** t)).mean()
    return t.mean()


def attention_operations(model, tokens, variant):
    """Of the products of all heads that the mask leaves, forward; backward takes 2.5 times as many."""
    return 2 * 2 * tokens * keys_of_a_query(model, variant) * model["hidden"]


def rate(label, entry, limits, config, precision, variant):
    """The rate that a kernel achieved, and its limit."""
    model = tomllib.loads((ROOT / f"input/{config}.toml").read_text())["model"]
    tokens = PER_RANK[config] * model["sequence"]
    gemm = re.match(r"kzero::tensor::multiply_matrices \w+ (\d+) (\d+) (\d+)", label)
    if gemm:
        m, n, k = map(int, gemm.groups())
        return 2 * m * n * k * entry["calls"] / entry["seconds"] / limits["product"], "of the product's rate"
    if "attention_" in label:
        operations = attention_operations(model, tokens, variant) * (2.5 if "backward" in label else 1)
        return operations * entry["calls"] / entry["seconds"] / limits["product"], "of the product's rate"
    for part, size in row_bytes(model, tokens, 2 if precision == "bf16" else 4).items():
        if label.endswith(part):
            calls = entry["calls"] if part != "cross_entropy_with_gradient" else limits["steps"]  # all chunks are one pass
            return size * calls / entry["seconds"] / limits["copy"], "of copy"
    return None, ""


def group_of(label):
    return next((name for name, part in GROUPS.items() if re.search(part, label)), "rest")


def print_groups(entries, total):
    shares = dict.fromkeys([*GROUPS, "rest"], 0)
    for label, entry in entries.items():
        shares[group_of(label)] += entry["seconds"] / total
    print("  in percent: " + ", ".join(f"{name} {100 * share:.1f}" for name, share in shares.items()))


def report(record, config, precision, variant, copy):
    entries = record["in_steps"]
    total = sum(e["seconds"] for e in entries.values())
    product = min(e["fastest"] for label, e in record["outside"].items() if label.endswith("768 768 768 NN"))
    launches = sum(e["calls"] for label, e in entries.items() if not label.startswith(("fence", "kzero::engine::step")))
    limits = {"product": 2 * 768**3 / product, "copy": copy, "steps": record["steps"]}
    print(
        f"\n{config} {precision} {variant}: {total / record['steps'] * 1e3:.1f} ms a step, "
        f"{launches / record['steps']:.0f} launches; product {limits['product'] / 1e9:.0f} GFLOP/s, copy {copy / 1e9:.1f} GB/s"
    )
    print_groups(entries, total)
    for label, entry in sorted(entries.items(), key=lambda item: -item[1]["seconds"]):
        share = entry["seconds"] / total
        if share < 0.002:
            break
        achieved, unit = rate(label, entry, limits, config, precision, variant)
        text = f"{achieved:6.2f} {unit}" if achieved else ""
        name = "the rest of the step" if label == "kzero::engine::step" else re.sub("^kzero::(tensor|kernels)::", "", label)
        print(
            f"  {share:6.1%} {entry['seconds'] / record['steps'] * 1e3:9.2f} ms {entry['calls'] / record['steps']:6.0f} x  {name:48} {text}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda path: str(pathlib.Path(path).resolve()), required=True)
    parser.add_argument("--configs", nargs="+", default=["tiny", "small30m", "gpt2-124m"], choices=VOCAB)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--variants", nargs="+", default=["plain"], choices=["plain", "packed", "windows", "lora"])
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("changes", nargs="*", help="keys of the deck")
    arguments = parser.parse_args()
    copy = copy_bytes_per_second()
    with tempfile.TemporaryDirectory() as folder:
        for case in itertools.product(arguments.configs, arguments.precisions, arguments.variants):
            report(profile(arguments, *case, pathlib.Path(folder)), *case, copy)


if __name__ == "__main__":
    main()
