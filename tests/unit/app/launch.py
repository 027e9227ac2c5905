"""Starts the program that the environment names (KZERO, KZERO_LAUNCHER) on decks of a tiny model."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import h5py
import numpy as np

KZERO = os.environ["KZERO"]
LAUNCHER = os.environ["KZERO_LAUNCHER"].split()
FOR_DEVICES = os.environ.get("KZERO_FOR_DEVICES") == "1"
USES_NCCL = os.environ.get("KZERO_USES_NCCL") == "1"
PATIENCE = 120  # seconds, for a machine with other load

# A shell without job control ignores these for what it starts in the background, and kzero leaves ignored signals ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

DECK = """
[model]
layers = 1
hidden = 12
heads = 3
sequence = 11

[train]
steps = 6
global_batch = 4
micro_batch = 1

[optimizer]
lr = 1e-2
warmup = 2

[data]
files = ["text"]

[checkpoint]
folder = "saved"

[run]
metrics = "metrics.jsonl"
peak_tflops = 1.0
"""


def codes_without_a_failure():
    """The exit codes that the launcher of a killed rank must not end with. MPICH 4.1 to 4.2.1 may say 0: if two ranks end badly
    at once, it forgets the codes of both (github.com/pmodels/mpich/issues/7057)."""
    shown = subprocess.run([LAUNCHER[0], "--version"], capture_output=True, text=True, timeout=PATIENCE).stdout
    version = re.search(r"^HYDRA[\s\S]*?Version: *(\d+)\.(\d+)\.?(\d*)", shown)
    loses_codes = version and (4, 1, 0) <= tuple(int(n or 0) for n in version.groups()) < (4, 2, 2)
    return (75,) if loses_codes else (0, 75)


def records(path, event):
    return [r for r in map(json.loads, Path(path).read_text().splitlines()) if r["event"] == event]


def steps_of(path):
    """Results that a restart has to repeat to the last bit."""
    keys = ("step", "loss", "grad_norm", "lr", "loss_scale", "skipped", "tokens")
    return [tuple(r[k] for k in keys) for r in records(path, "step")]


def arrays_of(checkpoint):
    """{parameter/state: float32 array} of all shards, each parameter's ranges put together in file order."""
    found = {}
    for shard in sorted(Path(checkpoint).glob("shard_*.h5")):
        with h5py.File(shard) as file:

            def keep(name, item):
                if isinstance(item, h5py.Dataset):
                    found.setdefault(name, []).append(item[:].ravel())

            file.visititems(keep)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def ranks_of(launch):
    """{rank: process id} of the program's processes that this launch started."""
    parents, ranks = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue  # it has just ended
    for pid in parents:
        above = pid
        while above in parents and above != launch.pid:
            above = parents[above]
        try:
            if above == launch.pid and Path(f"/proc/{pid}/exe").resolve() == Path(KZERO).resolve():
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                numbers = dict(v.split(b"=", 1) for v in variables if v.startswith((b"PMI_RANK=", b"PMIX_RANK=")))
                ranks.update((int(number), pid) for number in numbers.values())
        except OSError:
            continue
    return ranks


class LaunchTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="kzero_app_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "deck.toml").write_text(DECK)
        (self.folder / "text").write_bytes(b"".join(b"%d bottles of beer, " % i for i in range(200)))

    def command(self, arguments, ranks):
        launcher = [*LAUNCHER, str(ranks)] if ranks else []
        return [*launcher, KZERO, *map(str, arguments)]

    def run_kzero(self, *arguments, ranks=None):
        return subprocess.run(self.command(arguments, ranks), cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)

    def train(self, *overrides, ranks=None):
        return self.run_kzero("train", "deck.toml", *overrides, ranks=ranks)

    def expect(self, result, code, *texts):
        """The exit code, and on standard error each text exactly once, however many ranks there were."""
        shown = f"{result.args}\n{result.stdout}\n{result.stderr}"
        self.assertEqual(result.returncode, code, shown)
        for text in texts:
            self.assertEqual(result.stderr.count(text), 1, f"{text!r} in {shown}")
        return result

    def start(self, *overrides, ranks=2):
        """A long run, once it has done some steps."""
        launch = subprocess.Popen(
            self.command(["train", "deck.toml", "train.steps=1000000", *overrides], ranks),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(lambda: (launch.kill(), launch.communicate()) if launch.poll() is None else None)
        metrics, end = self.folder / "metrics.jsonl", time.monotonic() + PATIENCE
        while not (metrics.exists() and metrics.read_text().count('"step"') > 6):
            self.assertIsNone(launch.poll(), "it ended early")
            self.assertLess(time.monotonic(), end, "it did not begin")
            time.sleep(0.02)
        return launch

    def finish(self, launch):
        _, launch.errors = launch.communicate(timeout=PATIENCE)
        return launch.returncode

    def signal_rank(self, launch, rank, number):
        os.kill(ranks_of(launch)[rank], number)

    def metrics(self, event):
        return records(self.folder / "metrics.jsonl", event)

    def checkpoints(self):
        return sorted(p.name for p in (self.folder / "saved").glob("step_*"))
