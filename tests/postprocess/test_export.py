#!/usr/bin/env python3
"""Runs for the dashboards of others, opened by their own readers: each value is there once, however often the run was exported."""

import importlib.util
import json
import os
import subprocess
import sys
import time
import unittest
from unittest import mock

import scripts  # first: makes the scripts' folder known

# isort: split
import curves
import export
import records
import tensorboard_files

START = {
    "event": "start",
    "first_step": 0,
    "time": 1000.0,
    "deck": "[zero]\nstage = 3\n[data]\nfiles = [\"a.bin\"]\n",
    "steps": 12,
}


def step(number, loss):
    return {"event": "step", "step": number, "loss": loss, "grad_norm": 1.5, "lr": 1e-3, "tokens": 50, "seconds": 0.5, "time": 1001.0 + number,
            "tokens_per_second": 100.0, "loss_scale": 1, "skipped": False}  # fmt: skip


def validation(done, loss):
    return {"event": "validation", "step": done, "loss": loss, "tokens": 10, "seconds": 1.5, "time": 1001.5 + done}


FIRST = [START, *(step(n, 9.0 - n) for n in range(6)), validation(6, 4.5), step(6, 99.0), step(7, 98.0)]  # killed
AGAIN = [{**START, "first_step": 6, "time": 1100.0}, *(step(n, 9.0 - n) for n in range(6, 9)), validation(9, 2.5)]
REST = [*(step(n, 9.0 - n) for n in range(9, 12)), {"event": "evaluation", "name": "wiki, 2", "step": 12, "loss": 1.5, "seconds": 1.0, "time": 1120.0},
        {"event": "end", "reason": "completed", "exit_code": 0, "steps": 12, "time": 1121.0}]  # fmt: skip


class Base(scripts.Scripts):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "run/metrics.jsonl"
        self.path.parent.mkdir()

    def append(self, lines, mode="a"):
        with open(self.path, mode) as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)

    def wanted(self):
        (run,) = records.read_all([self.path])
        return sorted((p.step, p.tag, p.value) for p in curves.points(run))


class Exports:
    """What holds for each format. KIND names its option; found() returns all (step, tag, value) as its own reader gives them."""

    def setUp(self):
        super().setUp()
        self.place = self.folder / self.KIND

    def export(self):
        result = self.run_script("export.py", self.path, f"--{self.KIND}", self.place)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def check(self):
        found, wanted = sorted(self.found()), self.wanted()
        self.assertEqual([one[:2] for one in found], [one[:2] for one in wanted])
        for one, other in zip(found, wanted):
            self.assertAlmostEqual(one[2], other[2], delta=1e-6 * abs(other[2]))

    def test_a_run_that_goes_on_is_exported_again(self):
        self.append(FIRST)
        self.assertIn("up to step 8", self.export())
        self.check()
        self.assertIn((8, "loss/training", 98.0), self.found())
        self.export()
        self.check()
        self.append(AGAIN)  # repeats steps 6 and 7
        self.export()
        self.check()
        self.append(REST)
        self.export()
        self.check()
        self.assertIn((12, "loss/wiki_ 2", 1.5), self.found())

    def test_follow_writes_what_is_new_until_the_run_has_ended(self):
        parts = [FIRST[:4], FIRST[4:], AGAIN, REST]
        naps, sleep = [], time.sleep

        def nap(seconds):
            if seconds != 3.0:  # of a package
                return sleep(seconds)
            naps.append(seconds)
            if parts:
                self.append(parts.pop(0))

        with mock.patch("time.sleep", nap):
            result = self.run_script("export.py", self.path, f"--{self.KIND}", self.place, "--follow", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("cannot be read: No such file or directory; waiting", result.stderr)
        self.assertEqual(naps, [3.0] * 4)
        self.check()

    def test_the_next_run_of_a_file_is_another_one(self):
        self.append(FIRST)
        self.export()
        self.append([{**START, "time": 5000.0}, step(0, 3.25), step(1, 3.0)], mode="w")
        self.export()
        self.assertEqual([one for one in sorted(self.found(5000.0)) if one[1] == "loss/training"],
                         [(1, "loss/training", 3.25), (2, "loss/training", 3.0)])  # fmt: skip


class TensorBoard(Exports, Base):
    KIND = "tensorboard"

    def setUp(self):
        super().setUp()
        with mock.patch("sys.path", [*sys.path]):
            try:
                tensorboard_files.Writer(self.folder / "trial").close()
                from tensorboard.backend.event_processing import event_accumulator  # noqa: F401
            except (SystemExit, ImportError):
                self.skipTest("tensorboard is not installed; bash cmake/debian.sh tests installs it")

    def found(self, _start=None):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        events = EventAccumulator(str(self.place / "run"), size_guidance={"scalars": 0})
        events.Reload()
        return [(event.step, tag, event.value) for tag in events.Tags()["scalars"] for event in events.Scalars(tag)]

    def test_an_export_without_news_writes_no_file(self):
        self.append(FIRST)
        self.export()
        before = sorted(self.place.rglob("*"))
        self.assertEqual(self.export(), "")
        self.assertEqual(sorted(self.place.rglob("*")), before)


@unittest.skipUnless(importlib.util.find_spec("wandb"), "wandb is not installed; pip install wandb")
class Wandb(Exports, Base):
    KIND = "wandb"

    def folders(self):
        return sorted(self.place.glob("wandb/offline-run-*"))

    def rows_of(self, file):
        """The rows of a file, by the reader that the package has: Python's, or that of its command in versions without it (0.31)."""
        try:
            from wandb.proto import wandb_internal_pb2
            from wandb.sdk.internal.datastore import DataStore
        except ImportError:
            command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(file)]
            result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "WANDB_MODE": "offline"})
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = [json.loads(line) for line in result.stdout.splitlines()]
            return [line["history"]["item"] for line in lines if line["type"] == "history"]
        store, rows = DataStore(), []
        store.open_for_scan(str(file))
        while (data := store.scan_data()) is not None:
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append({(item.key or item.nested_key[0]): json.loads(item.value_json) for item in items})
        return rows

    def found(self, start=1000.0):
        sys.modules["wandb"].teardown()  # as an end of the program does: until then, version 0.19 may keep all in memory
        files = [next(folder.glob("*.wandb")) for folder in self.folders() if self.id_of(start) in folder.name]
        self.assertEqual(len(files), 1, self.folders())
        found = []
        for row in self.rows_of(files[0]):
            found += [(row["_step"], tag, value) for tag, value in row.items() if tag[0] != "_"]
        return found

    def id_of(self, start):
        return curves.identity(records.run_of("run", [{**START, "time": start}]))


@unittest.skipUnless(importlib.util.find_spec("mlflow"), "mlflow is not installed; pip install mlflow-skinny")
class MLflow(Exports, Base):
    KIND = "mlflow"

    def run_of(self, start=1000.0):
        import mlflow

        client = mlflow.MlflowClient(tracking_uri=self.place.as_uri())
        runs = client.search_runs([client.get_experiment_by_name("kzero").experiment_id])
        (run,) = [run for run in runs if run.info.start_time == 1000 * start]
        return client, run

    def found(self, start=1000.0):
        client, run = self.run_of(start)
        return [(m.step, name, m.value) for name in run.data.metrics for m in client.get_metric_history(run.info.run_id, name)]

    def test_deck_and_end_of_the_run(self):
        self.append(FIRST)
        self.export()
        _, run = self.run_of()
        self.assertEqual((run.info.status, run.data.params), ("RUNNING", {"zero.stage": "3", "data.files": '["a.bin"]'}))
        self.append([*AGAIN, *REST])
        self.export()
        _, run = self.run_of()
        self.assertEqual((run.info.status, run.info.end_time, run.info.run_name), ("FINISHED", 1121000, "run"))


class WithoutPackages(Base):
    def test_a_missing_package_is_named(self):
        self.append(FIRST)
        for kind, module in (("tensorboard", "tensorboard"), ("wandb", "wandb"), ("mlflow", "mlflow")):
            absent = {name: None for name in [module, *sys.modules] if name.split(".")[0] == module}
            with (
                self.subTest(kind),
                mock.patch.dict("sys.modules", absent),
                mock.patch("importlib.util.find_spec", lambda name: name),
            ):
                result = self.run_script("export.py", self.path, f"--{kind}", self.folder / "out")
                self.assertEqual(result.returncode, 1)
                self.assertIn(f"pip install {module}", result.stderr)

    def test_a_format_has_to_be_named(self):
        result = self.run_script("export.py", self.path)
        self.assertEqual(result.returncode, 2)
        self.assertIn("name at least one of --tensorboard, --wandb, --mlflow", result.stderr)

    def test_a_step_that_changed_or_is_gone_is_the_first_difference(self):
        point = lambda number, value: curves.Point(number, "loss", value, 0.0)
        for known, last, wanted in (
            ({1: 5.0, 2: 4.0}, 0, None),
            ({1: 5.0, 2: 4.5, 3: 2.0}, 0, 2),
            ({4: 1.0}, 0, 4),
            ({1: 5.0}, 3, 2),
        ):
            target = mock.Mock(known={("loss", number): value for number, value in known.items()}, last=last)
            self.assertEqual(export.first_difference(target, [point(1, 5.0), point(2, 4.0), point(3, 2.0)]), wanted)


if __name__ == "__main__":
    sys.exit(int(not unittest.main(exit=False).result.wasSuccessful()))  # wandb passes the exit code on, and takes numbers only
