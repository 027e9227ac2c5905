"""Short trainings, and what is compared of them: losses, bits and initial weights."""

import hashlib
import json
import struct
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


def overrides_of(bundle, precision):
    """Of the runs that a host and a device both make."""
    return REFERENCE | {"train.precision": precision, "data.files": bundle / "text"}


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


def train(machine, name, deck, overrides, seconds, ranks=None, wrapper=()):
    """Trains a deck of the bundle with overrides {key: value}. The metrics file is new: its steps are those of this run."""
    metrics = machine.work / f"{name}.jsonl"
    metrics.unlink(missing_ok=True)
    keys = settings(overrides | {"run.metrics": metrics, "run.progress": "plain"})
    command = machine.command("kzero", "train", machine.bundle / "decks" / deck, *keys, ranks=ranks)
    return read_metrics(machine.run(name, command, seconds, wrapper), metrics)


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


def initial_weights(machine, name, deck, overrides, seconds):
    """The initial weights of a deck, which one step at a learning rate of 0 saves: (training, weights_of or None)."""
    folder, file = machine.work / name, machine.work / f"{name}.safetensors"
    unchanged = {"train.steps": 1, "optimizer.lr": 0, "optimizer.min_lr": 0, "checkpoint.folder": folder}
    training = train(machine, name, deck, overrides | unchanged, seconds)
    if not training.is_complete():
        return training, None
    done = machine.run(f"{name}.convert", machine.command("kzero", "convert", folder, file), seconds)
    training.done = done
    return training, weights_of(file) if done.code == 0 else None


def read_references(bundle):
    """Results that bundle.sh computed on a host; empty if the bundle was made without them."""
    path = Path(bundle) / "references.json"
    return json.loads(path.read_text()) if path.exists() else {}
