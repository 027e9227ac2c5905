"""Short trainings, their text, and what is compared of them: losses, bits and initial weights.

training.py FILE: writes the text.
"""

import hashlib
import json
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

from programs import Done

STEPS = 5
# gpt2-124m on so few tokens that a host needs under a minute
REFERENCE = {
    "train.steps": STEPS,
    "train.global_batch": 2,
    "train.micro_batch": 1,
    "data.format": "bytes",
    "run.communicator": "mpi",
    "run.peak_tflops": 1,  # measures none
}
SAMPLE = 8  # elements at either end of a tensor
TEXT_BYTES = 1 << 20
WORDS = "a and are as at be but by for from had he her his i in is it not of on or she that the they this to was we with you".split()
# A rehearsal trains decks of these sizes on a host.
SMALL_MODEL = {"model.layers": 2, "model.hidden": 64, "model.heads": 4, "model.sequence": 64, "model.vocab": 256}
SMALL_LLAMA = {"model.kv_heads": 2, "model.feed_forward": 128}


def overrides_of(bundle, precision):
    """Of the runs that a host and a device both make."""
    return REFERENCE | {"train.precision": precision, "data.files": bundle / "text"}


def fixed_text():
    """The text of all runs, the same for every commit: lines of words in an order that only looks random. As bytes, its characters
    are tokens of every vocabulary."""
    state, length, pieces = 1, 0, []
    while length < TEXT_BYTES:
        state = (state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        high = state >> 33
        pieces.append(WORDS[high % len(WORDS)] + ("\n" if high % 389 < 31 else " "))
        length += len(pieces[-1])
    return "".join(pieces).encode()[:TEXT_BYTES]


def rehearsed(deck, overrides):
    """The overrides of the same run on a host: a small model, and the back ends that a host has."""
    changed = overrides | SMALL_MODEL | (SMALL_LLAMA if "llama" in deck else {})
    changed.pop("zero.reduction", None)  # only NCCL has sums of its own
    return changed | {"run.communicator": "mpi", "run.attention": "kzero"}


def settings(overrides):
    """The arguments of a kzero command."""
    return [f"{key}={value}" for key, value in overrides.items()]


@dataclass
class Training:
    done: Done
    start: dict = field(default_factory=dict)
    steps: list = field(default_factory=list)
    end: dict = field(default_factory=dict)

    def is_complete(self):
        return self.done.code == 0 and bool(self.steps) and bool(self.end)

    def losses(self):
        return [step["loss"] for step in self.steps]

    def bits(self):
        """Numbers that repeat to the last bit. Metrics have numbers that read back exactly."""
        return [(step["step"], step["loss"], step["grad_norm"]) for step in self.steps]


def read_metrics(done, path):
    """The records of a metrics file; a killed run may leave a broken last line."""
    training = Training(done)
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record["event"] == "step":
            training.steps.append(record)
        elif record["event"] in ("start", "end"):
            setattr(training, record["event"], record)
    return training


def train(machine, name, deck, overrides, seconds, ranks=None, options=()):
    """Trains a deck of the bundle with overrides {key: value}. The metrics file is new: its steps are those of this run.
    `options`: of mpiexec."""
    metrics = machine.work / f"{name}.jsonl"
    metrics.unlink(missing_ok=True)
    overrides = rehearsed(deck, overrides) if machine.rehearses else overrides
    keys = settings(overrides | {"run.metrics": metrics, "run.progress": "plain"})
    command = machine.command("kzero", "train", machine.bundle / "decks" / deck, *keys, ranks=ranks, options=options)
    return read_metrics(machine.run(name, command, seconds), metrics)


def train_once(machine, name, deck, overrides, seconds):
    """The same, or its result if an earlier part of this call has run it."""
    if name not in machine.kept:
        machine.kept[name] = train(machine, name, deck, overrides, seconds)
    return machine.kept[name]


def largest_difference(a, b):
    """Of two lists of losses; infinite if one is shorter or has a value that is not finite."""
    if len(a) != len(b) or not a or None in a or None in b:
        return float("inf")
    return max(abs(x - y) for x, y in zip(a, b))


def expect_bits(found, name, training, expected):
    """The same losses and norms to the last bit."""
    if not training.is_complete():
        found.check(name, False, training.done.how())
        return
    same = training.bits() == expected.bits()
    far = largest_difference(training.losses(), expected.losses())
    found.check(name, same, "the same bits" if same else f"other bits; losses differ by {far:.1e}")


def weights_of(path):
    """{"sha256": of all values, "samples": {tensor: its first and last elements}} of a safetensors file in fp32."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        tensors = json.loads(file.read(length))
        tensors.pop("__metadata__", None)
        begin, digest = 8 + length, hashlib.sha256()
        while block := file.read(1 << 24):
            digest.update(block)
        samples = {}
        for name, tensor in sorted(tensors.items()):
            first, last = tensor["data_offsets"]
            count = min(SAMPLE, (last - first) // 4)
            samples[name] = []
            for at in (first, last - 4 * count):
                file.seek(begin + at)
                samples[name] += struct.unpack(f"<{count}f", file.read(4 * count))
    return {"sha256": digest.hexdigest(), "samples": samples}


def farthest_sample(a, b):
    """The largest difference of two sets of samples, as a share of the largest value in its tensor's sample."""
    if set(a) != set(b):
        return float("inf")
    worst = 0.0
    for name, values in a.items():
        scale = max(map(abs, values)) or 1.0
        worst = max(worst, max(abs(x - y) for x, y in zip(values, b[name])) / scale)
    return worst


def exported(machine, name):
    """Where initial_weights() leaves the weights. kzero convert puts a config.json next to them."""
    return machine.work / f"{name}.exported" / "model.safetensors"


def initial_weights(machine, name, deck, overrides, seconds):
    """The initial weights of a deck, which one step at a learning rate of 0 saves: (training, weights_of or None)."""
    folder, file = machine.work / name, exported(machine, name)
    file.parent.mkdir(exist_ok=True)
    unchanged = {"train.steps": 1, "optimizer.lr": 0, "optimizer.min_lr": 0, "checkpoint.folder": folder}
    training = train(machine, name, deck, overrides | unchanged, seconds)
    if not training.is_complete():
        return training, None
    done = machine.run(f"{name}.convert", machine.command("kzero", "convert", folder, file), seconds)
    training.done = done
    return training, weights_of(file) if done.code == 0 else None


def read_references(bundle):
    """Results that references.py computed on a host; empty if the bundle was made without them."""
    path = Path(bundle) / "references.json"
    return json.loads(path.read_text()) if path.exists() else {}


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(fixed_text())
