#!/usr/bin/env python3
"""Writes runs for the dashboards of others: TensorBoard, Weights & Biases (offline folders, for `wandb sync`) and MLflow.

A run is a metrics file (run.metrics) or a folder that contains one. It may still go on: exported again, or with --follow, what is new
is added and nothing is there twice. Steps that a restart repeated replace the earlier ones. Each format needs its own Python package.
"""

import argparse
import math
import signal
import sys
import time

import curves
import mlflow_store
import records
import tensorboard_files
import wandb_folder

TARGETS = {"tensorboard": tensorboard_files.Target, "wandb": wandb_folder.Target, "mlflow": mlflow_store.Target}
FINAL = records.FINISHED + records.FAILED  # reasons of ends after which no job resumes by itself


def same(left, right):
    """Whether two values are one in fp32, in which event files keep them."""
    return math.isclose(left, right, rel_tol=1e-6)


def first_difference(target, points):
    """The first step at which a target differs from the run, or whose new values it cannot take because it has later steps; else None."""
    of_run = {(point.tag, point.step): point.value for point in points}
    lost = [step for (tag, step), value in target.known.items() if not same(of_run.get((tag, step), math.nan), value)]
    late = [step for tag, step in of_run.keys() - target.known.keys() if step < target.last]
    return min(lost + late, default=None)


def update(target, run):
    """Brings a target to the state of the run. Returns how many values are new."""
    points = sorted(curves.points(run), key=lambda point: point.step)
    step = first_difference(target, points)
    if step is not None:
        target.rewind(step, time.time())
    new = [point for point in points if (point.tag, point.step) not in target.known]
    target.add(new, run)
    target.known.update({(point.tag, point.step): point.value for point in new})
    return len(new)


class Export:
    """The targets of all runs. A run is known by its first record: its file may be renamed, and another run may take its place."""

    def __init__(self, places, project):
        self.places, self.project, self.targets = places, project, {}

    def of(self, run):
        identity = curves.identity(run)
        if identity not in self.targets:
            self.targets[identity] = [TARGETS[kind](place, run, self.project) for kind, place in self.places.items()]
        return self.targets[identity]

    def update(self, runs):
        for run in runs:
            for target in self.of(run):
                if count := update(target, run):
                    print(
                        f"{target.place}: {count} values of {run.name}, up to step {run.steps[-1]['step'] + 1 if run.steps else 0}"
                    )
        sys.stdout.flush()

    def close(self):
        for targets in self.targets.values():
            for target in targets:
                target.close()


def state_of(paths):
    """What changes if a file does."""
    found = [records.metrics_file(path) for path in paths]
    return [(path, path.stat().st_size, path.stat().st_ino) if path.exists() else None for path in found]


def follow(export, paths, seconds):
    """Exports whatever is new until all runs have ended. Waits for files that have no step yet."""
    seen, told = None, set()
    while True:
        try:
            state = state_of(paths)
            runs = records.read_all(paths) if state != seen else None
        except SystemExit as problem:
            if str(problem) not in told:
                print(f"{problem}; waiting", file=sys.stderr)
            told.add(str(problem))
            runs = None
        if runs:
            export.update(runs)
            seen = state
            if all(run.end.get("reason") in FINAL for run in runs):
                return
        time.sleep(seconds)


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="metrics files, or folders that hold one")
    parser.add_argument("--tensorboard", metavar="FOLDER", help="write event files there, a folder a run")
    parser.add_argument("--wandb", metavar="FOLDER", help="write offline folders of Weights & Biases there")
    parser.add_argument(
        "--mlflow", metavar="FOLDER", help="write into the MLflow store of this folder, or of this tracking URI"
    )
    parser.add_argument("--project", default="kzero", help="W&B's project, MLflow's experiment; default: %(default)s")
    parser.add_argument("--follow", nargs="?", type=float, const=10.0, metavar="SECONDS",
                        help="look for new steps at this interval, until the runs have ended or Ctrl-C; default: %(const)s")  # fmt: skip
    arguments = parser.parse_args()
    if not any(getattr(arguments, kind) for kind in TARGETS):
        parser.error("name at least one of " + ", ".join(f"--{kind}" for kind in TARGETS))
    return arguments


def stop(*_):
    raise KeyboardInterrupt


def main():
    arguments = read_arguments()
    export = Export({kind: getattr(arguments, kind) for kind in TARGETS if getattr(arguments, kind)}, arguments.project)
    signal.signal(signal.SIGTERM, stop)
    try:
        if arguments.follow is None:
            export.update(records.read_all(arguments.runs))
        else:
            follow(export, arguments.runs, arguments.follow)
    except KeyboardInterrupt:
        print("stopped; run again to continue", file=sys.stderr)
    finally:
        export.close()


if __name__ == "__main__":
    main()
