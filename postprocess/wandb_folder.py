"""Writes offline folders of Weights & Biases with its own package. `wandb sync FOLDER` uploads one; nothing is sent from here.

A folder can only grow, and its steps only increase. An export therefore writes a new folder of the same run, with everything, and then
removes the folders that earlier exports of this run left.
"""

import os
import shutil
from pathlib import Path

import curves
import naming

MISSING = "--wandb needs the Python package wandb ({}): pip install wandb, in a venv of your own"
QUIET = {"console": "off", "silent": True, "disable_git": True, "disable_code": True, "disable_job_creation": True, "save_code": False,
         "x_disable_stats": True, "x_disable_meta": True, "x_disable_machine_info": True, "x_save_requirements": False}  # fmt: skip


def load():
    """The package, set to send nothing."""
    os.environ["WANDB_MODE"] = "offline"
    os.environ["WANDB_ERROR_REPORTING"] = "false"
    os.environ["WANDB_SILENT"] = "true"
    try:
        import wandb
    except ImportError as problem:
        raise SystemExit(MISSING.format(problem)) from None
    return wandb


class Target:
    """An offline folder of one run."""

    def __init__(self, folder, run, project):
        self.folder, self.place, self.known = Path(folder), None, {}
        self._wandb, self._project, self._id = load(), project, curves.identity(run)
        self.last = 0  # of a smaller step no value can be added
        self._log, self._exit_code = None, 0

    def rewind(self, _step, _when):
        """Begins a new folder: one cannot be corrected."""
        if self._log:
            self._log.finish(exit_code=0)
        self._log, self.last, self.known = None, 0, {}

    def add(self, points, run):
        rows = {}
        for point in points:
            rows.setdefault(point.step, {"_timestamp": 0.0}).update({point.tag: point.value})
            rows[point.step]["_timestamp"] = max(rows[point.step]["_timestamp"], point.time)
        self._log = self._log or self._begin(run)
        for step in sorted(rows):
            self._log.log(rows[step], step=step)
            self.last = step
        self._exit_code = run.end.get("exit_code") or 0

    def close(self):
        if self._log:
            self._log.finish(exit_code=self._exit_code)

    def _begin(self, run):
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self._wandb.Settings(
            **{name: value for name, value in QUIET.items() if name in self._wandb.Settings.model_fields}
        )
        log = self._wandb.init(mode="offline", dir=str(self.folder), id=self._id, project=self._project, name=run.name, reinit="create_new",
                               config=naming.deck_of(run), settings=settings)  # fmt: skip
        self.place = Path(log.settings.sync_dir)
        if self.folder.resolve() not in self.place.resolve().parents:
            log.finish(exit_code=1)
            raise SystemExit(f"{self.folder}: cannot be written: wandb chose {self.place} instead")
        for old in self.place.parent.glob(f"offline-run-*-{self._id}*"):  # "-1" follows if two began in one second
            if old.name != self.place.name:
                shutil.rmtree(old)
        return log
