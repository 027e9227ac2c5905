"""kzero trainings on a cluster, as the tests and tools of this folder start and check them.

KZERO names the program; without it, it is that of the preset release.
"""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from nodes.launch import Launch

ROOT = Path(__file__).resolve().parents[2]
KZERO = Path(os.environ.get("KZERO", ROOT / "build/release/kzero")).resolve()
KEEP = (ROOT, KZERO.parent)  # what nodes see though it may be below /tmp
PASSED_ON = ("OMP_NUM_THREADS", "OMP_PROC_BIND", "LD_PRELOAD")  # of what tests of MPI programs run with
MODEL = (
    "model.sequence=32",
    "train.micro_batch=1",
    "optimizer.warmup=2",
    "train.validate_every=0",
    "data.validation_fraction=0",
    f'data.files=["{ROOT}/docs/*.md"]',
)  # input/quickstart.toml made short


@dataclass(frozen=True)
class Checkpoint:
    step: int
    parameters: str  # their hash


class BadCheckpoint(RuntimeError):
    """kzero's message about a checkpoint that does not verify."""


def rank_environment():
    return {"OMP_NUM_THREADS": "1", **{name: os.environ[name] for name in PASSED_ON if name in os.environ}}


class Training:
    """One training, with a folder of its own that all nodes share. settings: further overrides of its deck."""

    def __init__(self, cluster, name, *settings, folder=None, deck=ROOT / "input/quickstart.toml", model=MODEL):
        self.cluster, self.deck = cluster, deck
        self.folder = (folder or cluster.work) / name
        self.folder.mkdir()
        self.saved = self.folder / "checkpoints"
        self.settings = [
            *model,
            "run.log_every=1",
            f"checkpoint.folder={self.saved}",
            f"run.metrics={self.folder}/metrics.jsonl",
            *settings,
        ]

    def overrides(self, *settings):
        """Those of all settings that count, as kzero takes a key once: the last with its key."""
        return list({setting.partition("=")[0]: setting for setting in (*self.settings, *settings)}.values())

    def command(self, *settings):
        """Words of a launch. Job scripts name an end file of their own."""
        return [KZERO, "train", self.deck, f"run.end_file={self.folder}/end.json", *self.overrides(*settings)]

    def launch(self, hosts, *settings, **options):
        """options: of Launch."""
        return Launch(self.cluster, self.command(*settings), hosts, environment=rank_environment(), **options)

    def exit_code(self, outcome):
        """The exit code that the run recorded, if the launch hung; otherwise the launch's."""
        return json.loads((self.folder / "end.json").read_text())["exit_code"] if outcome.hung else outcome.code

    def records(self, event):
        """The records of the metrics file with this event; none if there is no file yet."""
        path = self.folder / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [record for record in map(json.loads, lines) if record["event"] == event]

    def verify(self, timeout=120):
        """Verifies the newest checkpoint and returns it. Raises BadCheckpoint."""
        return read_checkpoint([KZERO, "inspect", "--verify", self.saved], timeout)

    def announced(self, output):
        """The step of the last checkpoint that a launch's output reports as written; 0: none."""
        return max(map(int, re.findall(r"^checkpoint after (\d+) steps?:", output, re.M)), default=0)


def read_checkpoint(command, timeout):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    progress = re.search(r"^progress +(\d+) steps", done.stdout, re.M)
    parameters = re.search(r"^parameters .* hash (\w+)$", done.stdout, re.M)
    if done.returncode != 0 or not progress or not parameters:
        raise BadCheckpoint(f"{' '.join(map(str, command))}: exit code {done.returncode}: {done.stdout[-300:]}{done.stderr}")
    return Checkpoint(int(progress[1]), parameters[1])
