"""Counts the launches of a training step, by kernel.

    cmake --preset stand-in && cmake --build --preset stand-in --target kzero
    python3 launches.py build/stand-in/kzero DECK [overrides]

Trains three steps of the deck's model with narrow layers and short sequences, which do not change the number of launches, and
counts the third in its time line. The build for a pretended device runs the code for devices. Its products fuse nothing but
biases and sums: cuBLASLt's also compute GELU's gradient, with the sum of its rows, so there a block of GPT-2 launches neither
gelu_backward nor one of the sum_rows, with its sum_groups.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

NARROW = {
    "model.sequence": 32,
    "model.vocab": 512,
    "train.steps": 3,
    "train.micro_batch": 2,
    "train.global_batch": 2,
    "run.attention": "kzero",
    "run.profile_steps": "2-2",
}


def heads_of(deck):
    """The deck's model.heads, a line of its own."""
    for line in deck.read_text().splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "heads":
            return int(value.split("#")[0])
    sys.exit(f"{deck}: no model.heads")


def record(program, deck, overrides, timeline):
    hidden = 8 * heads_of(deck)
    # A narrower feed-forward layer would have no room for the sums that the backward of a norm makes.
    changes = NARROW | {"model.hidden": hidden, "model.feed_forward": 4 * hidden, "run.profile": timeline}
    command = [program, "train", deck, *(f"{key}={value}" for key, value in changes.items()), *overrides]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{program}: {done.stderr.strip()}")


def launches(timeline):
    """{kernel: launches}; a product is one launch, whatever the reference products launch for it."""
    counts, until = Counter(), 0
    for span in json.loads(timeline.read_text())["traceEvents"]:
        if span["ph"] != "X" or span["cat"] not in ("kernel", "product", "copy") or span["ts"] < until:
            continue
        if span["cat"] != "kernel":
            until = span["ts"] + span["dur"]
        counts[span["name"] if span["cat"] == "kernel" else span["cat"]] += 1
    return counts


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        timeline = Path(folder) / "timeline.json"
        record(sys.argv[1], Path(sys.argv[2]), sys.argv[3:], timeline)
        counts = launches(timeline)
    for name, count in counts.most_common():
        print(f"{count:6} {name}")
    print(f"{sum(counts.values()):6} in all")


if __name__ == "__main__":
    main()
