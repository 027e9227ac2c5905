"""Writes event files for TensorBoard with its own wheel, which does not need TensorFlow."""

import importlib.util
import math
import re
import statistics
import sys
import time
from pathlib import Path

import experts

MISSING = """--tensorboard needs the Python package tensorboard ({}): `bash cmake/debian.sh tests` installs what of it writes files; or
pip install tensorboard, in a venv made by python3 -m venv --system-site-packages VENV, which sees matplotlib too"""
TREE = Path(__file__).resolve().parents[1] / ".deps/tensorboard"  # where cmake/debian.sh tests installs it

COLUMNS = {"loss": "loss/training", "grad_norm": "training/gradient_norm", "lr": "training/learning_rate", "loss_scale": "training/loss_scale",
           "tokens_per_second": "throughput/tokens_per_second", "mfu": "throughput/mfu", "chosen_reward": "preferences/chosen_reward",
           "rejected_reward": "preferences/rejected_reward", "accuracy": "preferences/accuracy"}  # fmt: skip
EXPERTS = {"experts/load_largest_block": (experts.LOAD, max), "experts/load_median_block": (experts.LOAD, statistics.median),
           "experts/entropy_least_block": (experts.ENTROPY, min), "experts/entropy_median_block": (experts.ENTROPY, statistics.median)}  # fmt: skip


def scalars(run):
    """(step, tag, value) of everything that TensorBoard draws, where steps are counts of steps done."""
    for record in run.steps:
        for column, tag in COLUMNS.items():
            if column in record:
                yield record["step"] + 1, tag, record[column]
    steps = experts.of(run)
    for tag, (value, pick) in EXPERTS.items():
        for record, found in zip(run.steps, experts.over_blocks(steps, value, pick)):
            yield record["step"] + 1, tag, found
    for name, found in [("validation", run.validations), *run.evaluations.items()]:
        for record in found:
            yield record["step"], f"loss/{name}", record.get("loss")


def folder_name(name):
    """A name of a run as a name of a folder."""
    return re.sub(r"[^\w.,=#+-]+", "_", name).strip("_") or "run"


def clock(run):
    """The time at which each count of steps was reached, from the steps' own seconds; the last one is now."""
    ends, total = {0: 0.0}, 0.0
    for record in run.steps:
        total += record.get("seconds") or 0
        ends[record["step"] + 1] = total
    now = time.time()
    return lambda step: now - total + ends.get(step, total)


def writer_of(folder):
    """A function (step, tag, value, time) that writes an event file, and one that closes it; refuses a folder that has some."""
    if importlib.util.find_spec("tensorboard") is None:
        sys.path.append(str(TREE))
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as problem:
        raise SystemExit(MISSING.format(problem)) from None
    if any(folder.glob("events.out.tfevents.*")):
        raise SystemExit(f"{folder}: holds event files already, which TensorBoard would mix with new ones; name another folder")
    try:
        writer = EventFileWriter(str(folder))
    except OSError as error:
        raise SystemExit(f"{folder}: cannot be written: {error.strerror or error}") from None

    def add(step, tag, value, when):
        writer.add_event(Event(wall_time=when, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)])))

    return add, writer.close


def write(runs, folder):
    """Writes one folder of event files a run."""
    for run in runs:
        target = Path(folder) / folder_name(run.name)
        add, close = writer_of(target)
        when = clock(run)
        for step, tag, value in scalars(run):
            if value is not None and math.isfinite(value):
                add(step, tag, value, when(step))
        close()
        print(f"wrote {target}")
