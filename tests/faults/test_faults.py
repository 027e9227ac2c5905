"""No fault loses a good checkpoint or starts from a wrong one. Arguments: names of test classes; none: all.

KZERO_KILLS: how many kills (6); KZERO_SEED: of their instants, printed by every run.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import numpy as np
from launch import PATIENCE, LaunchTest, arrays_of, codes_without_a_failure, ranks_of, records, steps_of

KILLS = int(os.environ.get("KZERO_KILLS", "6"))
SEED = int(os.environ.get("KZERO_SEED", str(random.SystemRandom().randrange(10**6))))
STEPS = 100000  # of the schedule; no run gets there
BLOCK = 64 * 1024
WAYS = ([], ["checkpoint.asynchronous=true"], ["checkpoint.ranks_per_file=2"])


class FaultTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.saved = self.folder / "saved"

    def run_to(self, step, *overrides, ranks=2, code=75, first=0):
        """Runs until `step`; its records are in run.jsonl."""
        (self.folder / "run.jsonl").unlink(missing_ok=True)
        return self.expect(
            self.train(
                f"train.steps={STEPS}", f"run.max_steps={step - first}", "run.metrics=run.jsonl", *overrides, ranks=ranks
            ),
            code,
        )

    def first_step(self, metrics="run.jsonl"):
        return records(self.folder / metrics, "start")[-1]["first_step"]

    def expect_same_steps(self, *metrics, first=0):
        """Whatever was recorded of a step, by any of the runs, is what a run without faults records of it."""
        found = [r for name in metrics for r in steps_of(self.folder / name)]
        last = max(r[0] for r in found)
        self.expect(
            self.train(
                f"train.steps={STEPS}",
                f"run.max_steps={last + 1}",
                "run.metrics=whole.jsonl",
                "checkpoint.folder=whole",
                "checkpoint.every=0",
                ranks=2,
            ),
            75,
        )
        whole = {r[0]: r for r in steps_of(self.folder / "whole.jsonl")}
        for record in found:
            self.assertEqual(record, whole[record[0]])


class Kills(FaultTest):
    def test_kill_9_at_random_instants(self):
        print(f"KZERO_SEED={SEED} KZERO_KILLS={KILLS}", flush=True)
        draw = random.Random(SEED)
        newest, cut_short = 0, 0
        for kill in range(KILLS):
            way = WAYS[kill % len(WAYS)]
            every = draw.choice((1, 1, 7))
            launch = self.begin(kill, f"checkpoint.every={every}", *way)
            self.wait_for_an_instant(draw, launch, kill)
            ranks = ranks_of(launch)
            if ranks:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(ranks[draw.choice(sorted(ranks))], signal.SIGKILL)
            self.assertNotIn(self.finish(launch), codes_without_a_failure(), launch.errors)
            if kill > 0:
                self.assertGreaterEqual(self.first_step(f"{kill}.jsonl"), newest, f"kill {kill} lost a checkpoint")
            newest = max([newest, *(r["step"] for r in records(self.folder / f"{kill}.jsonl", "checkpoint"))])
            self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)
            cut_short += len(list(self.saved.glob("*.partial")))
        print(f"{cut_short} of them left an unfinished checkpoint", flush=True)
        self.run_to(newest + 200, first=newest)
        self.assertGreaterEqual(self.first_step(), newest)
        self.expect_same_steps("run.jsonl", *(f"{kill}.jsonl" for kill in range(KILLS)))

    def begin(self, kill, *overrides):
        """A run that resumes from what the last one left, once it has saved something."""
        command = self.command(["train", "deck.toml", f"train.steps={STEPS}", f"run.metrics={kill}.jsonl", *overrides], 2)
        launch = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (launch.kill(), launch.communicate()) if launch.poll() is None else None)
        metrics, end = self.folder / f"{kill}.jsonl", time.monotonic() + PATIENCE
        while not (metrics.exists() and '"checkpoint"' in metrics.read_text()):
            self.assertIsNone(launch.poll(), "it ended early")
            self.assertLess(time.monotonic(), end, "it did not save")
            time.sleep(0.005)
        return launch

    def wait_for_an_instant(self, draw, launch, kill):
        """Every second time while a checkpoint is being written, else any time."""
        time.sleep(draw.uniform(0, 0.2))
        if kill % 2:
            end = time.monotonic() + PATIENCE
            while not list(self.saved.glob("*.partial")) and time.monotonic() < end and launch.poll() is None:
                time.sleep(0.0005)
            time.sleep(draw.uniform(0, 0.03))


class Disks(FaultTest):
    @contextlib.contextmanager
    def small_disk(self, options):
        self.saved.mkdir(exist_ok=True)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.saved], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("mounting a small disk needs root")
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", self.saved], check=True)

    def remount(self, options):
        subprocess.run(["mount", "-o", f"remount,{options}", self.saved], check=True)

    def test_a_full_disk(self):
        for way in WAYS:
            with self.subTest(way), self.small_disk("size=400k"):
                result = self.run_to(1000, "checkpoint.every=2", "checkpoint.keep=0", *way, code=4)
                self.assertIn("No space left on device", result.stderr)
                self.assertIn("saved/step_", result.stderr)
                newest = records(self.folder / "run.jsonl", "checkpoint")[-1]["step"]
                self.assertGreater(newest, 2)
                self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)
                self.assertEqual(list(self.saved.glob("*.partial")), [])
                shutil.copy(self.folder / "run.jsonl", self.folder / "before.jsonl")
                self.remount("size=10m")
                self.run_to(newest + 3, *way, first=newest)
                self.assertEqual(self.first_step(), newest)
                self.expect_same_steps("before.jsonl", "run.jsonl")

    def test_a_read_only_folder(self):
        for way in WAYS:
            with self.subTest(way), self.small_disk("size=10m"):
                self.run_to(4, *way)
                self.remount("ro")
                result = self.run_to(6, *way, first=4, code=4)
                self.assertIn("saved", result.stderr)
                self.assertIn("Read-only", result.stderr)
                self.remount("rw")
                self.run_to(6, *way, first=4)
                self.assertEqual(self.first_step(), 4)


class Damage(FaultTest):
    LARGER = ("model.hidden=96", "model.layers=2")  # some megabytes

    def save_two(self, *overrides):
        shutil.rmtree(self.saved, ignore_errors=True)
        self.run_to(4, "checkpoint.every=2", *overrides)
        return self.saved / "step_00000004"

    def expect_fallback(self, *texts, overrides=()):
        """A restart takes the checkpoint before, and says what is wrong with the newest."""
        result = self.run_to(4, *overrides, first=2)
        self.assertEqual(self.first_step(), 2)
        for text in ("passed over", *texts):
            self.assertIn(text, result.stderr)

    def test_a_flipped_byte_in_every_64_kib(self):
        for way in ([], ["checkpoint.ranks_per_file=2"]):
            newest = self.save_two(*self.LARGER, *way)
            for shard in sorted(newest.glob("shard_*.h5")):
                whole = shard.read_bytes()
                for block in range(0, len(whole), BLOCK):
                    at = min(block + (block // 7) % BLOCK, len(whole) - 1)
                    shard.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
                    result = self.expect(self.run_kzero("inspect", newest, "--verify"), 4)
                    self.assertIn(str(shard), result.stderr, at)
                    self.assertIn("damaged", result.stderr, at)
                    if block == BLOCK:
                        self.expect_fallback(f"step_00000004/{shard.name}: dataset ", overrides=self.LARGER)
                        self.save_two(*self.LARGER, *way)
                        self.assertEqual(shard.read_bytes(), whole)
                shard.write_bytes(whole)
            self.expect(self.run_kzero("inspect", newest, "--verify"), 0)

    def test_truncated_missing_and_foreign_files(self):
        def cut(path, count):
            path.write_bytes(path.read_bytes()[:count])

        def another_version(path):
            text, count = re.subn(rb"\nformat \d+\n", b"\nformat 9\n", path.read_bytes(), count=1)
            self.assertEqual(count, 1)
            path.write_bytes(text)

        for way in ([], ["checkpoint.ranks_per_file=2"]):
            for name, harm, text in (
                ("shard_00000.h5", lambda p: cut(p, -1), "its manifest says"),
                ("shard_00000.h5", lambda p: cut(p, 0), "has 0 bytes"),
                ("shard_00000.h5", Path.unlink, "cannot be opened"),
                ("manifest.h5", another_version, "is of format version 9"),
                ("manifest.h5", lambda p: cut(p, 700), "is damaged"),
                ("manifest.h5", Path.unlink, "cannot be opened"),
            ):
                with self.subTest(f"{way} {name} {text}"):
                    newest = self.save_two(*way)
                    harm(newest / name)
                    self.expect_fallback(f"saved/step_00000004/{name}", text)
                    # It was replaced by the restart, and is good again.
                    self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)

    def test_strict_runs_take_no_older_one(self):
        newest = self.save_two()
        shard = newest / "shard_00001.h5"
        shard.write_bytes(shard.read_bytes()[:-1])
        result = self.run_to(6, "checkpoint.strict=true", first=4, code=4)
        self.assertIn("step_00000004/shard_00001.h5", result.stderr)
        self.assertIn("would resume from saved/step_00000002", result.stderr)
        self.assertFalse(records(self.folder / "run.jsonl", "start"))
        shutil.rmtree(newest)
        self.run_to(4, "checkpoint.strict=true", first=2)
        self.assertEqual(self.first_step(), 2)

    def test_retention_counts_no_damaged_one(self):
        self.run_to(4, "checkpoint.every=2", "checkpoint.keep=1")
        # The newest, and the newest one whose weights a later step has shown to be sane.
        self.assertEqual(self.checkpoints(), ["step_00000002", "step_00000004"])
        (self.saved / "step_00000006").mkdir()  # damaged, and newer
        self.run_to(8, "checkpoint.every=4", "checkpoint.keep=1", first=4)
        self.assertEqual(self.checkpoints(), ["step_00000004", "step_00000006", "step_00000008"])


class Ways(FaultTest):
    """Ways to write that must not matter."""

    def test_files_and_restarts_are_the_same(self):
        names = {}
        for name, way in zip(("plain", "asynchronous", "shared"), WAYS):
            self.run_to(12, "checkpoint.every=3", "checkpoint.keep=0", f"checkpoint.folder={name}", *way)
            names[name] = steps_of(self.folder / "run.jsonl")
            saved = [r["step"] for r in records(self.folder / "run.jsonl", "checkpoint")]
            self.assertEqual(saved, [3, 6, 9, 12])
            (end,) = records(self.folder / "run.jsonl", "end")
            for row in end["memory"]:
                for category, held in row["categories"].items():
                    self.assertEqual(held["planned_bytes"], held["peak_bytes"], (name, category))
        self.assertEqual(names["asynchronous"], names["plain"])
        self.assertEqual(names["shared"], names["plain"])
        for step in ("step_00000003", "step_00000012"):
            plain = sorted((self.folder / "plain" / step).glob("shard_*.h5"))
            asynchronous = sorted((self.folder / "asynchronous" / step).glob("shard_*.h5"))
            self.assertEqual([p.read_bytes() for p in plain], [p.read_bytes() for p in asynchronous])
            self.assertEqual(len(list((self.folder / "shared" / step).glob("shard_*.h5"))), 1)
            self.assertEqual(
                {k: sorted(v.tolist()) for k, v in arrays_of(self.folder / "shared" / step).items() if k.endswith("master")},
                {k: sorted(v.tolist()) for k, v in arrays_of(self.folder / "plain" / step).items() if k.endswith("master")},
            )
        for name in names:
            for ranks, way in ((2, WAYS[2]), (1, WAYS[1]), (4, ["checkpoint.ranks_per_file=3"])):
                shutil.copytree(self.folder / name / "step_00000012", self.folder / "from/step_00000012")
                self.run_to(14, "checkpoint.folder=from", *way, ranks=ranks, first=12)
                self.assertEqual(self.first_step(), 12)
                shutil.rmtree(self.folder / "from")

    def test_every_grid_loads_what_any_other_wrote(self):
        grids = ((1, 1), (2, 1), (6, 3))  # ranks, grid.tensor: there are three heads
        state = {}
        for i, (ranks, tensor) in enumerate(grids):
            way = WAYS[i % len(WAYS)]
            self.run_to(3, f"grid.tensor={tensor}", *way, "checkpoint.folder=made", ranks=ranks)
            made = self.hash_of("made/step_00000003")
            for others, cut in grids:
                shutil.copytree(self.folder / "made", self.folder / "taken")
                # Without steps of its own a run leaves what it found; a step of rate 0 saves it again.
                self.run_to(
                    4,
                    f"grid.tensor={cut}",
                    "optimizer.lr=0",
                    "optimizer.min_lr=0",
                    "checkpoint.folder=taken",
                    *WAYS[(i + 1) % len(WAYS)],
                    ranks=others,
                    first=3,
                )
                self.assertEqual(self.first_step(), 3)
                state[others, cut] = arrays_of(self.folder / "taken/step_00000004")
                shutil.rmtree(self.folder / "taken")
            for arrays in state.values():
                for name in arrays:
                    if name.endswith("master"):
                        np.testing.assert_array_equal(np.sort(arrays[name]), np.sort(state[1, 1][name]), name)
            self.assertRegex(made, "^[0-9a-f]{16}$")
            shutil.rmtree(self.folder / "made")

    def hash_of(self, checkpoint):
        return self.expect(self.run_kzero("inspect", checkpoint), 0).stdout.split("hash ")[1].split()[0]

    def test_what_the_copy_takes_is_planned(self):
        def planned(*overrides):
            self.run_to(2, *overrides)
            (end,) = records(self.folder / "run.jsonl", "end")
            shutil.rmtree(self.saved)
            return end["memory"][0]["categories"]

        plain, asynchronous = planned(), planned("checkpoint.asynchronous=true")
        # Master weights and two moments of what a rank owns; the optimizer's state is the moments here.
        state = asynchronous["io"]["peak_bytes"] - plain["io"]["peak_bytes"]
        self.assertLess(abs(state - plain["optimizer"]["peak_bytes"] * 3 // 2), 1024)

    def test_a_stop_waits_for_what_is_under_way(self):
        launch = self.start("checkpoint.every=1", "checkpoint.asynchronous=true")
        self.signal_rank(launch, 1, signal.SIGTERM)
        self.assertEqual(self.finish(launch), 75, launch.errors)
        (end,) = self.metrics("end")
        self.assertEqual(self.metrics("checkpoint")[-1]["step"], end["steps"])
        self.assertFalse(list(self.saved.glob("*.partial")))
        self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)

    def test_other_training_data_are_refused(self):
        self.run_to(4)
        (self.folder / "other").write_bytes((self.folder / "text").read_bytes() + b".")
        for change, text in (
            ("data.files=other", "data.files is"),
            ("train.seed=9", "train.seed is 9, was 1"),
            ('data.order="sequential"', "data.order is"),
        ):
            with self.subTest(change):
                result = self.run_to(6, change, first=4, code=2)
                self.assertIn("checkpoint.allow_new_data", result.stderr)
                self.assertIn(text, result.stderr)
        text = (self.folder / "text").read_bytes()
        (self.folder / "text").write_bytes(text + text)  # under the same name
        self.assertIn("the files of data.files differ", self.run_to(6, first=4, code=2).stderr)
        self.run_to(6, "checkpoint.allow_new_data=true", first=4)
        self.assertEqual(self.first_step(), 4)


if __name__ == "__main__":
    unittest.main()
