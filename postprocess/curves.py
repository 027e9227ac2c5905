"""The curves of a run as programs for dashboards take them: values by tag, and by the count of steps done."""

import hashlib
import json
import math
import re
import statistics
import time
from typing import NamedTuple

import experts

COLUMNS = {"loss": "loss/training", "grad_norm": "training/gradient_norm", "lr": "training/learning_rate", "loss_scale": "training/loss_scale",
           "tokens_per_second": "throughput/tokens_per_second", "mfu": "throughput/mfu", "chosen_reward": "preferences/chosen_reward",
           "rejected_reward": "preferences/rejected_reward", "accuracy": "preferences/accuracy", "cross_entropy": "distillation/cross_entropy",
           "kl": "distillation/kl"}  # fmt: skip
EXPERTS = {"experts/load_largest_block": (experts.LOAD, max), "experts/load_median_block": (experts.LOAD, statistics.median),
           "experts/entropy_least_block": (experts.ENTROPY, min), "experts/entropy_median_block": (experts.ENTROPY, statistics.median)}  # fmt: skip

UNFIT = r"[^\w.\- :/]"  # characters that MLflow refuses in names


class Point(NamedTuple):
    step: int  # the count of steps done
    tag: str
    value: float
    time: float  # since 1970


def scalars(run):
    """(record, step, tag, value) of everything that is drawn over the steps."""
    for record in run.steps:
        for column, tag in COLUMNS.items():
            if column in record:
                yield record, record["step"] + 1, tag, record[column]
    steps = experts.of(run)
    for tag, (value, pick) in EXPERTS.items():
        for record, found in zip(run.steps, experts.over_blocks(steps, value, pick)):
            yield record, record["step"] + 1, tag, found
    for name, found in [("validation", run.validations), *run.evaluations.items()]:
        for record in found:
            yield record, record["step"], f"loss/{re.sub(UNFIT, '_', name)}", record.get("loss")


def clock(run):
    """The time at which each count of steps was reached, from the steps' own seconds; the last one is now."""
    ends, total = {0: 0.0}, 0.0
    for record in run.steps:
        total += record.get("seconds") or 0
        ends[record["step"] + 1] = total
    now = time.time()
    return lambda step: now - total + ends.get(step, total)


def points(run):
    """Everything that is drawn and finite. Records without a time of day, of older files, get one from the steps' seconds."""
    when = clock(run)
    for record, step, tag, value in scalars(run):
        if value is not None and math.isfinite(value):
            yield Point(step, tag, value, record["time"] if "time" in record else when(step))


def identity(run):
    """A name of the run that is the same whenever its file is read: a digest of its first record, which has the time and the deck."""
    first = run.launches[0][0] if run.launches else {}
    unique = first if "time" in first else [first, run.name]  # older files have no times
    return hashlib.sha256(json.dumps(unique, sort_keys=True).encode()).hexdigest()[:16]
