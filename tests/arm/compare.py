"""Does AArch64 compute the bits of x86-64? Trains small models on both and compares the hashes of their checkpoints.

    python3 tests/arm/compare.py X86_BUILD ARM_BUILD

Programs for AArch64 run in qemu's emulator, whose times and memory mean nothing. Prints a table. Ends with 1 if bits differ that
docs/parallelism.md promises.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
EMULATOR = ["qemu-aarch64", "-L", os.path.join(ROOT, ".deps/arm64")]

DECK = """
[model]
layers = 2
hidden = 128
heads = 4
sequence = 32
vocab = 256
[train]
steps = 4
global_batch = 8
micro_batch = 1
seed = 1
[optimizer]
lr = 3e-3
warmup = 2
schedule = "constant"
clip = 1.0
[data]
files = ["TEXT"]
format = "bytes"
order = "shuffled"
[run]
peak_tflops = 1
[checkpoint]
folder = "checkpoints"
"""

# Sums of up to 4 x 1024 terms in a step of one sequence
WIDE = {
    width: [f"model.hidden={width}", "model.layers=1", "train.global_batch=1", "train.steps=2"] for width in (256, 512, 1024)
}
LIBRARIES = ("reference", "blas", "onednn")
PROMISED = ("reference",)  # docs/parallelism.md: those of the others depend on the processor
PRECISIONS = ("fp32", "bf16")

# What else kernels compute: name and settings
MODELS = (
    ("fp16", ["train.precision=fp16"]),
    ("Llama, Muon", ["model.family=llama", "model.kv_heads=2", "optimizer.kind=muon"]),
    ("Llama with norms of heads", ["model.family=llama", "model.qk_norm=true"]),
    ("OLMo 2", ["model.family=olmo2"]),
    ("Apertus", ["model.family=apertus"]),
    ("NorMuon", ["model.family=llama", "optimizer.kind=normuon", "optimizer.polynomials=polar_express"]),
    ("Gemma 3, bf16", ["model.family=gemma3", "train.precision=bf16"]),
    ("experts", ["model.family=llama", "model.experts=4", "model.experts_per_token=2", "optimizer.kind=lion"]),
    ("dropout, recomputation", ["model.dropout=0.1", "recompute.mode=full"]),
    ("sequences of 512", ["model.sequence=512", "train.global_batch=1", "train.steps=2"]),
)


class Program:
    """kzero of one build, in a folder of its own."""

    def __init__(self, build, emulator, folder):
        self.words = [*emulator, os.path.join(os.path.abspath(build), "kzero")]
        self.folder = folder
        os.mkdir(folder)

    def run(self, *words, launcher=()):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_PROC_BIND": "false"}
        done = subprocess.run(
            [*launcher, *self.words, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800
        )
        if done.returncode:
            sys.exit(f"{' '.join(done.args)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def train(self, name, *settings, ranks=1):
        """Returns the folder of the checkpoints, and what was printed."""
        checkpoints = os.path.join(self.folder, name)
        deck = self.folder + ".toml"
        with open(deck, "w") as file:
            file.write(DECK.replace("TEXT", os.path.join(os.path.dirname(self.folder), "text")))
        launcher = ["mpiexec", "-n", str(ranks)] if ranks > 1 else []
        return checkpoints, self.run("train", deck, f"checkpoint.folder={checkpoints}", *settings, launcher=launcher)

    def hash(self, checkpoints):
        """Of all parameters and the whole state of the optimizer."""
        return re.search(r"hash (\w{16})", self.run("inspect", checkpoints))[1]

    def trained(self, name, *settings, ranks=1):
        return self.hash(self.train(name, *settings, ranks=ranks)[0])


class Comparison:
    def __init__(self, x86, arm):
        self.x86, self.arm = x86, arm
        self.faults = 0

    def show(self, name, x86, arm, promised):
        same = x86 == arm
        fault = promised and not same
        self.faults += fault
        verdict = "FAULT" if fault else "same" if same else "other bits"
        print(f"{name:36} {x86:18} {arm:18} {verdict}", flush=True)

    def trainings(self, name, *settings, promised=True, ranks=1):
        begin = time.monotonic()
        arm = self.arm.trained(name, *settings, ranks=ranks)
        seconds = time.monotonic() - begin
        self.show(f"{name} ({seconds:.0f} s)", self.x86.trained(name, *settings), arm, promised)

    def restarts(self):
        """Two steps on one and the other two on the other end with the bits of four steps on one."""
        expected = self.x86.trained("four steps", "run.gemm=reference")
        for first, second, name in ((self.x86, self.arm, "x86-64, then Arm"), (self.arm, self.x86, "Arm, then x86-64")):
            checkpoints, _ = first.train(f"{name}", "run.gemm=reference", "train.steps=2")
            second.run("train", first.folder + ".toml", f"checkpoint.folder={checkpoints}", "run.gemm=reference")
            self.show(name, expected, first.hash(checkpoints), True)

    def texts(self):
        checkpoints, _ = self.x86.train("text", "run.gemm=reference", "train.steps=20")
        words = ("generate", checkpoints, "--prompt", "The memory of", "--max-tokens", "24", "--json")
        found = [re.search(r'"tokens": ?\[(.*?)\]', program.run(*words))[1] for program in (self.x86, self.arm)]
        self.show("generated tokens", *("alike" if f == found[0] else f for f in found), True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("x86")
    parser.add_argument("arm")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(ROOT, "README.md"), os.path.join(folder, "text"))
        comparison = Comparison(
            Program(arguments.x86, [], os.path.join(folder, "x86")),
            Program(arguments.arm, EMULATOR, os.path.join(folder, "arm")),
        )
        comparison.restarts()
        comparison.texts()
        for precision in PRECISIONS:
            for library in LIBRARIES:
                settings = (f"train.precision={precision}", f"run.gemm={library}")
                promised = library in PROMISED
                comparison.trainings(f"{precision}, {library}", *settings, promised=promised)
                for width, wide in WIDE.items():
                    comparison.trainings(f"{precision}, {library}, {width} wide", *settings, *wide, promised=promised)
        for name, settings in MODELS:
            comparison.trainings(name, "run.gemm=reference", *settings, promised=False)
        comparison.trainings("two ranks, stage 3", "zero.stage=3", "run.gemm=reference", ranks=2)
    return comparison.faults > 0


if __name__ == "__main__":
    sys.exit(main())
