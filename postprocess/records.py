"""Reads metrics files: one JSON object per line, see docs/metrics.md.

A run that was killed and restarted appends to its file and may repeat steps: the last record of a step counts. A start at step 0
begins another run. A line that a crash truncated is left out.
"""

import json
import math
import re
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import sound

# Reasons of an end after which no job resumes by itself: nothing was left to do, or something is wrong.
FINISHED = ("completed", "nothing_to_do")
FAILED = ("diverged", "verification", "replay")


@dataclass
class Run:
    name: str
    steps: list = field(default_factory=list)  # one record a step, in order of steps
    validations: list = field(default_factory=list)
    restarts: list = field(default_factory=list)  # the steps at which it resumed, if steps followed
    end: dict = field(default_factory=dict)  # of the last job with steps; empty while it runs
    start: dict = field(default_factory=dict)  # of the last job with steps
    evaluations: dict = field(default_factory=dict)  # by name: one record a step, in order of steps
    seconds: dict = field(default_factory=dict)  # by event: the sum over all jobs, repeated steps included
    launches: list = field(default_factory=list)  # of each job, from its start record on: all its records
    nodes: list = field(default_factory=list)  # records of nodes' times, in order of steps; undone steps have none

    def column(self, name):
        """A value of each step; NaN where the file has null or none."""
        return [math.nan if r.get(name) is None else r[name] for r in self.steps]

    def positions(self, axis, done=None):
        """The positions of counts of finished steps on an axis, "steps" or "tokens" (since step 0); without counts: of every step."""
        if done is None:
            done = [r["step"] + 1 for r in self.steps]
        if axis == "steps" or not self.steps:
            return list(done)
        first = self.steps[0]
        total = first["step"] * first.get("tokens", 0)
        tokens = {first["step"]: total}
        for record in self.steps:
            total += record.get("tokens", 0)
            tokens[record["step"] + 1] = total
        size = self.steps[-1].get("tokens", 0)  # of a step that the file does not have
        return [tokens.get(count, count * size) for count in done]


def name_of(path):
    """The name by which a user knows the run: its folder if the file is just "metrics", or "metrics.N" of an earlier run."""
    earlier = re.fullmatch(r"metrics(\.\d+)?", path.stem)
    return path.resolve().parent.name + (earlier[1] or "") if earlier else path.stem


def metrics_file(path):
    """The file that a user names, or the one in the folder that a user names."""
    path = Path(path)
    if not path.is_dir():
        return path
    found = [path / "metrics.jsonl"] if (path / "metrics.jsonl").exists() else sorted(path.glob("*.jsonl"))
    if len(found) == 1:
        return found[0]
    raise SystemExit(f"{path}: holds {'no' if not found else 'more than one'} metrics file (*.jsonl); name the file")


def records_of(path):
    """The records of a file. Prints on standard error how many lines are damaged, not counting those that a crash truncated."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise SystemExit(f"{path}: cannot be read: {error.strerror}") from None
    damaged, sound_lines = [], 0
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if sound.is_sound(record):
            sound_lines += 1
            yield record
        else:
            damaged.append(number)
    if damaged and sound_lines:
        print(f"{path}:{damaged[0]}: not a record as kzero writes it; lines left out: {len(damaged)}", file=sys.stderr)


def run_of(name, records):
    """The run from one start at step 0 to the next."""
    run, job, has_steps = Run(name), {}, False
    steps, validations, evaluations = {}, {}, {}
    for record in records:
        event = record.get("event")
        seconds = record.get("stall_seconds", record.get("seconds"))
        if event != "end" and isinstance(seconds, (int, float)):
            run.seconds[event] = run.seconds.get(event, 0) + seconds
        if event == "start":
            job, has_steps = record, False
            run.start = run.start or job
            run.launches.append([])
            run.nodes = [n for n in run.nodes if n["step"] <= job.get("first_step", 0)]
        elif event == "step":
            if not has_steps:  # a job without steps has changed nothing
                run.restarts += [job["first_step"]] if job.get("first_step") else []
                run.end, run.start = {}, job
            has_steps = True
            steps[record["step"]] = record
        elif event == "validation":
            validations[record["step"]] = record
        elif event == "evaluation" and isinstance(record.get("name"), str):
            evaluations.setdefault(record["name"], {})[record["step"]] = record
        elif event == "nodes" and record.get("nodes"):
            run.nodes.append(record)
        elif event == "end" and (has_steps or not run.end):
            run.end = record
        if run.launches:
            run.launches[-1].append(record)
    run.steps, run.validations = in_order(steps), in_order(validations)
    run.evaluations = {name: in_order(found) for name, found in evaluations.items()}
    return run


def in_order(records):
    return [records[step] for step in sorted(records)]


def read(path):
    """The runs of a metrics file that have steps or an end, oldest first. Raises SystemExit with a line of text if there is none."""
    path = Path(path)
    parts = [[]]
    for record in records_of(path):
        if record.get("event") == "start" and not record.get("first_step", 0):
            parts.append([])
        parts[-1].append(record)
    if not any(parts):
        raise SystemExit(f"{path}: holds no record of a run; give the file that run.metrics names")
    runs = [run_of(name_of(path), part) for part in parts]
    runs = [run for run in runs if run.steps or run.end.get("memory")]
    if not runs:
        raise SystemExit(f"{path}: holds no step of a run yet")
    if len(runs) > 1:
        for number, run in enumerate(runs, 1):
            run.name += f" #{number}"
    return runs


def read_all(paths):
    """The runs of all files. Files whose runs would have the same name are named by their paths."""
    paths = [metrics_file(path) for path in paths]
    found = [(path, read(path)) for path in paths]
    names = [runs[0].name for _, runs in found]
    for path, runs in found:
        if names.count(runs[0].name) > 1:
            for run in runs:
                run.name = f"{path}{run.name[len(name_of(Path(path))) :]}"
    return [run for _, runs in found for run in runs]


def smoothed(values, average=statistics.fmean):
    """The average around each value, over about a thirtieth of the run; NaN is left out."""
    reach = max(1, len(values) // 60)
    result = []
    for i in range(len(values)):
        near = [v for v in values[max(0, i - reach) : i + reach + 1] if math.isfinite(v)]
        result.append(average(near) if near else math.nan)
    return result
