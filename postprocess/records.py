"""Reads the metrics file of a run: one JSON object a line, see "metrics" in the deck reference.

A run that was killed and restarted appends to its file and may repeat steps: the last record of a
step counts. A line that a crash cut short is left out.
"""
import json
import math
import statistics
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Run:
    name: str
    starts: list = field(default_factory=list)  # every start event, in order
    steps: list = field(default_factory=list)  # one record a step, in order of steps
    validations: list = field(default_factory=list)
    checkpoints: list = field(default_factory=list)
    end: dict = field(default_factory=dict)  # of the last job; empty while it runs

    def restarts(self):
        """The steps at which the run went on after a stop."""
        return [s["first_step"] for s in self.starts if s.get("first_step", 0) > 0]

    def column(self, name):
        """The steps, counted from 1, and a value of each; NaN where the file has null."""
        values = [math.nan if r[name] is None else r[name] for r in self.steps]
        return [r["step"] + 1 for r in self.steps], values


def read(path):
    """The run that a metrics file describes. Raises SystemExit with a clear text if it is none."""
    path = Path(path)
    run = Run(name=path.parent.name if path.stem == "metrics" and path.parent.name else path.stem)
    last = {"step": {}, "validation": {}, "checkpoint": {}}
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise SystemExit(f"{path}: cannot be read: {error.strerror}") from None
    for line in lines:
        try:
            record = json.loads(line)
            event = record["event"]
        except (ValueError, KeyError, TypeError):
            continue
        if event == "start":
            run.starts.append(record)
            run.end = {}
        elif event == "end":
            run.end = record
        elif event in last:
            last[event][record["step"]] = record
    run.steps, run.validations, run.checkpoints = (
        [records[step] for step in sorted(records)] for records in last.values()
    )
    if not run.steps and not run.starts:
        raise SystemExit(f"{path}: holds no record of a run; give the file that run.metrics names")
    return run


def smoothed(values, average=statistics.fmean):
    """The average around each value, over about a thirtieth of the run; NaN is left out."""
    reach = max(1, len(values) // 60)
    result = []
    for i in range(len(values)):
        near = [v for v in values[max(0, i - reach) : i + reach + 1] if math.isfinite(v)]
        result.append(average(near) if near else math.nan)
    return result
