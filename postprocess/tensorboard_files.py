"""Writes event files for TensorBoard with its own wheel, which does not need TensorFlow."""

import importlib.util
import logging
import re
import sys
import time
from pathlib import Path

import curves

MISSING = """event files need the Python package tensorboard ({}): `bash cmake/debian.sh tests` installs what of it writes files; or
pip install tensorboard, in a venv made by python3 -m venv --system-site-packages VENV, which sees matplotlib too"""
TREE = Path(__file__).resolve().parents[1] / ".deps/tensorboard"  # where cmake/debian.sh tests installs it
PATTERN = "events.out.tfevents.*"


def folder_name(name):
    """A name of a run as a name of a folder."""
    return re.sub(r"[^\w.,=#+-]+", "_", name).strip("_") or "run"


class Writer:
    """Writes one event file into a folder."""

    def __init__(self, folder):
        if importlib.util.find_spec("tensorboard") is None:
            sys.path.append(str(TREE))
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as problem:
            raise SystemExit(MISSING.format(problem)) from None
        self._event, self._summary = event_pb2, summary_pb2
        try:
            self._file = EventFileWriter(str(folder))
        except OSError as error:
            raise SystemExit(f"{folder}: cannot be written: {error.strerror or error}") from None

    def add(self, point):
        value = self._summary.Summary.Value(tag=point.tag, simple_value=point.value)
        self._file.add_event(
            self._event.Event(wall_time=point.time, step=point.step, summary=self._summary.Summary(value=[value]))
        )

    def restart(self, step, when):
        """Makes readers forget values of this step and later ones."""
        log = self._event.SessionLog(status=self._event.SessionLog.START)
        self._file.add_event(self._event.Event(wall_time=when, step=step, session_log=log))

    def flush(self):
        self._file.flush()

    def close(self):
        self._file.close()


def write(runs, folder):
    """Writes one folder of event files a run. Refuses a folder that has some."""
    for run in runs:
        target = Path(folder) / folder_name(run.name)
        if any(target.glob(PATTERN)):
            raise SystemExit(
                f"{target}: holds event files already, which TensorBoard would mix with new ones; name another folder"
            )
        writer = Writer(target)
        for point in curves.points(run):
            writer.add(point)
        writer.close()
        print(f"wrote {target}")


class Target:
    """A run's folder of event files, which may have values of it already."""

    last = 0  # values of any step can be added

    def __init__(self, folder, run, _project):
        self.place = Path(folder) / folder_name(run.name)
        self.known = self._read()
        self._writer = None

    def _read(self):
        """The values of the files by (tag, step), as TensorBoard's own reader finds them."""
        if not any(self.place.glob(PATTERN)):
            return {}
        if importlib.util.find_spec("tensorboard") is None:
            sys.path.append(str(TREE))
        try:
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        except ImportError as problem:
            raise SystemExit(MISSING.format(problem)) from None
        logging.getLogger("tensorboard").setLevel(logging.ERROR)  # it would tell of each restart
        found = EventAccumulator(str(self.place), size_guidance={"scalars": 0})
        found.Reload()
        return {(tag, event.step): event.value for tag in found.Tags()["scalars"] for event in found.Scalars(tag)}

    def rewind(self, step, when):
        """Forgets values of this step and later ones."""
        self._open().restart(step, when)
        self.known = {key: value for key, value in self.known.items() if key[1] < step}

    def add(self, points, _run):
        for point in points:
            self._open().add(point)
        if self._writer:
            self._writer.flush()

    def close(self):
        if self._writer:
            self._writer.close()

    def _open(self):
        while not self._writer and any(self.place.glob(f"events.out.tfevents.{int(time.time())}.*")):
            time.sleep(0.1)  # readers order files by their names, in which time is in seconds
        self._writer = self._writer or Writer(self.place)
        return self._writer
