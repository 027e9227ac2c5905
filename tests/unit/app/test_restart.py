"""Folders of checkpoints: one run at a time, no wrong restart, no good one lost. Arguments: names of test classes; none: all."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
import unittest
from unittest import mock

from launch import PATIENCE, LaunchTest, ranks_of

DIVERGING = ("optimizer.lr=1000", "optimizer.warmup=0", "optimizer.weight_decay=1000")
ELSEWHERE = """kzero: the run that writes into this folder
pid 17
host node7
start 4711
machine another one
user ann
job {job}
restart {restart}
since 2026-01-02T03:04:05Z
token 1f2e3d4c
"""


class RestartTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.saved = self.folder / "saved"
        self.lock = self.saved / "lock"

    def stop_at(self, step, *overrides, first=0, code=75, ranks=None):
        return self.expect(self.train("train.steps=1000", f"run.max_steps={step - first}", *overrides, ranks=ranks), code)


class Refusals(RestartTest):
    """Changes that a restart refuses, and folders of other runs; each message names the way out."""

    def test_another_function_of_the_same_weights(self):
        self.expect(self.train(), 0)
        for change, text in (
            ("model.heads=4", "model.heads is 4, was 3"),
            ("model.norm_eps=1e-3", "model.norm_eps is 0.001, was 1e-05"),
            ("model.hidden=24", "model.hidden is 24, was 12"),
        ):
            result = self.expect(self.train("train.steps=8", change, ranks=2), 2, "is of another model", text)
            self.assertIn("another checkpoint.folder", result.stderr)
        again = self.expect(self.train("train.steps=8", "optimizer.lr=1e-3", "run.log_every=2"), 0)
        for text in ("optimizer.lr is 0.001, was 0.01", "train.steps is 8, was 6", "run.log_every is 2, was 1"):
            self.assertIn(text, again.stdout)

    def test_an_extended_run_says_that_its_rate_rises(self):
        self.expect(self.train("optimizer.min_lr=1e-4"), 0)
        shown = self.expect(self.train("optimizer.min_lr=1e-4", "train.steps=60"), 0).stdout
        self.assertRegex(
            shown, r"\nwarning     the learning rate rises by a factor of [\d.]+: [\d.]+ in step 6, [\d.]+ in step 7; the "
        )
        self.assertIn('needs optimizer.schedule = "wsd"', shown)
        last, following = (r["lr"] for r in self.metrics("step")[5:7])
        self.assertIn(f"a factor of {following / last:.3g}: {last:.2g} in step 6, {following:.2g} in step 7", shown)

    def test_the_weights_start_another_training(self):
        self.expect(self.train(), 0)
        self.expect(self.run_kzero("convert", "saved/step_00000006", "weights.safetensors"), 0)
        self.expect(self.train("train.global_batch=8", "model.initial=weights.safetensors", "checkpoint.folder=other"), 0)

    def test_a_fresh_start_beside_checkpoints(self):
        self.expect(self.train("checkpoint.resume=false"), 0)
        for ranks in (None, 2):
            result = self.expect(
                self.train("checkpoint.resume=false", ranks=ranks), 2, "checkpoint.resume = false starts afresh"
            )
            self.assertIn("saved/step_00000006", result.stderr)
            self.assertIn("another checkpoint.folder", result.stderr)
        self.expect(self.run_kzero("convert", "saved", "model.safetensors"), 0)
        self.expect(
            self.run_kzero("convert", "model.safetensors", "saved", "--deck", "deck.toml"),
            2,
            "saved/step_00000006: is a checkpoint already",
        )
        self.assertEqual(self.checkpoints(), ["step_00000006"])
        self.assertFalse(self.lock.exists())

    def test_a_checkpoint_is_no_folder_of_checkpoints(self):
        self.stop_at(4)
        for folder in ("saved/step_00000004", "saved/step_00000004/"):
            self.expect(self.train(f"checkpoint.folder={folder}", ranks=2), 2, "is a checkpoint itself", "; saved would be one")
        self.assertEqual(sorted(p.name for p in (self.saved / "step_00000004").iterdir()), ["manifest.h5", "shard_00000.h5"])

    def test_a_name_that_is_not_the_manifests(self):
        self.stop_at(4, "checkpoint.every=2")
        (self.saved / "step_00000002").rename(self.saved / "step_00000099")
        result = self.stop_at(6, first=4)
        self.assertIn("step_00000099: its manifest is that of step 2", result.stderr)
        self.assertEqual([r["first_step"] for r in self.metrics("start")], [0, 4])
        self.expect(self.run_kzero("inspect", "--verify", "saved"), 4, "its manifest is that of step 2")
        self.expect(self.train("checkpoint.strict=true"), 4, "its manifest is that of step 2")
        shutil.rmtree(self.saved / "step_00000004")
        shutil.rmtree(self.saved / "step_00000006")
        self.expect(self.train(), 4, "none that can be used")

    def test_what_is_done_is_not_done_again(self):
        self.expect(self.train(), 0)
        for steps in (6, 4):
            again = self.expect(self.train(f"train.steps={steps}", ranks=2), 0)
            self.assertIn(f"\nalready at step 6 of {steps}: nothing to do\n", again.stdout)
            self.assertNotIn("completed", again.stdout)
        self.assertEqual(
            [(r["reason"], r["steps"]) for r in self.metrics("end")],
            [("completed", 6), ("nothing_to_do", 6), ("nothing_to_do", 6)],
        )
        self.assertEqual(self.checkpoints(), ["step_00000006"])


class Locks(RestartTest):
    """One run at a time writes into a folder."""

    def kill_all(self, launch):
        pids = list(ranks_of(launch).values())
        launch.kill()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        launch.communicate()

    def test_the_second_run_ends_and_says_who_has_the_folder(self):
        launch = self.start("checkpoint.every=1")
        with mock.patch.dict(os.environ, SLURM_JOB_ID="4712"):
            for ranks in (None, 2):
                result = self.expect(
                    self.train("run.metrics=second.jsonl", ranks=ranks), 4, "another run writes into this folder"
                )
                self.assertIn(f"process {ranks_of(launch)[0]} on ", result.stderr)
                self.assertIn("another checkpoint.folder", result.stderr)
                self.assertFalse((self.folder / "second.jsonl").exists())
        (self.folder / "elsewhere").mkdir()
        self.expect(self.train("checkpoint.folder=elsewhere", "run.metrics=third.jsonl"), 0)
        self.signal_rank(launch, 0, signal.SIGTERM)
        self.assertEqual(self.finish(launch), 75, launch.errors)
        self.assertFalse(self.lock.exists())
        self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)

    def test_two_launches_at_once(self):
        for trial in range(1 if os.environ.get("KZERO_FEWER_VARIANTS") else 3):
            shutil.rmtree(self.saved, ignore_errors=True)
            launches = [
                subprocess.Popen(
                    self.command(
                        [
                            "train",
                            "deck.toml",
                            "train.steps=400",
                            "checkpoint.every=5",
                            "checkpoint.keep=2",
                            f"optimizer.lr=1e-{2 + i}",
                            f"run.metrics={trial}_{i}.jsonl",
                            *way,
                        ],
                        2,
                    ),
                    cwd=self.folder,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for i, way in enumerate(([], ["checkpoint.asynchronous=true"]))
            ]
            ends = [(self.finish(launch), launch.errors) for launch in launches]
            self.assertIn(0, [code for code, _ in ends], ends)
            for code, errors in ends:  # the second, unless the first had already ended
                self.assertIn(code, (0, 4), errors)
                self.assertEqual(errors.count("another run writes into this folder"), int(code == 4), errors)
            self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)
            self.assertEqual(len(self.checkpoints()), 2)

    def test_a_killed_run_blocks_nobody(self):
        launch = self.start("checkpoint.every=1")
        self.kill_all(launch)
        self.assertTrue(self.lock.exists())
        (self.saved / "step_00000001.0badcafe.partial").mkdir()
        (self.saved / "step_00000002.partial").mkdir()
        begin = time.monotonic()
        saved = max(int(name[5:13]) for name in self.checkpoints() if len(name) == 13)
        result = self.expect(
            self.train(f"train.steps={saved + 3}", "run.metrics=again.jsonl", ranks=2), 0, "taken over from process"
        )
        self.assertLess(time.monotonic() - begin, PATIENCE / 2)
        self.assertIn("which is dead", result.stderr)
        self.assertEqual(sorted(p.name for p in self.saved.iterdir() if "partial" in p.name or p.name == "lock"), [])

    def test_a_job_submitted_again_takes_its_own_folder_at_once(self):
        self.stop_at(2)
        self.lock.write_text(ELSEWHERE.format(job=4711, restart=0))
        with mock.patch.dict(os.environ, SLURM_JOB_ID="4711", SLURM_RESTART_COUNT="1"):
            result = self.stop_at(4, first=2, ranks=2)
        self.assertEqual(
            result.stderr.count("taken over from process 17 on node7, user ann, job 4711, since 2026-01-02T03:04:05Z"), 1
        )
        self.assertFalse(self.lock.exists())

    def test_a_run_of_another_node_is_seen_by_its_signs_of_life(self):
        self.stop_at(2)
        self.lock.write_text(ELSEWHERE.format(job="", restart=0))
        launch = subprocess.Popen(
            self.command(["train", "deck.toml"], 2),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        end = time.monotonic() + PATIENCE
        while launch.poll() is None and time.monotonic() < end:
            os.utime(self.lock)
            time.sleep(0.2)
        self.assertEqual(self.finish(launch), 4, launch.errors)
        self.assertIn("process 17 on node7", launch.errors)
        self.assertEqual(self.lock.read_text(), ELSEWHERE.format(job="", restart=0))

    def test_who_has_lost_the_folder_writes_no_more(self):
        for way in ([], ["checkpoint.asynchronous=true"]):
            (self.folder / "metrics.jsonl").unlink(missing_ok=True)
            launch = self.start("checkpoint.every=1", *way)
            fresh = self.folder / "fresh"
            fresh.write_text(ELSEWHERE.format(job="", restart=0))
            fresh.rename(self.lock)
            self.assertEqual(self.finish(launch), 4, launch.errors)
            self.assertEqual(
                launch.errors.count("has taken this folder of checkpoints over (process 17 on node7"), 1, launch.errors
            )
            self.assertTrue(self.lock.exists())
            self.lock.unlink()
            self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)

    def test_every_end_gives_the_folder_back(self):
        self.stop_at(2)
        self.expect(self.train("model.heads=4", ranks=2), 2)
        self.assertFalse(self.lock.exists())
        self.expect(self.train("train.steps=100", *DIVERGING, "optimizer.max_skipped=3", ranks=2), 5)
        self.assertFalse(self.lock.exists())
        (self.saved / "step_00000002/manifest.h5").write_bytes(b"")
        self.expect(self.train(ranks=2), 4)
        self.assertFalse(self.lock.exists())


class Divergence(RestartTest):
    def test_good_checkpoints_outlive_a_training_that_diverges(self):
        for ranks, way in ((None, []), (2, ["checkpoint.asynchronous=true"])):
            shutil.rmtree(self.saved, ignore_errors=True)
            self.stop_at(20, "checkpoint.every=10", "checkpoint.keep=2", ranks=ranks)
            result = self.expect(
                self.train(
                    "train.steps=1000",
                    "checkpoint.every=10",
                    "checkpoint.keep=2",
                    "optimizer.max_skipped=35",
                    *DIVERGING,
                    *way,
                    ranks=ranks,
                ),
                5,
                "not finite in 35 steps in a row",
            )
            self.assertIn("step_00000010", self.checkpoints(), result.stdout)
            self.assertEqual(self.checkpoints(), ["step_00000010", "step_00000020"])

    def test_code_5_names_the_checkpoint_from_before_and_the_command_that_goes_back(self):
        for ranks, overrides in ((2, ()), (1, ("checkpoint.keep=1", "checkpoint.asynchronous=true"))):
            with self.subTest(f"{ranks} ranks {overrides}"):
                shutil.rmtree(self.saved, ignore_errors=True)
                every = ("checkpoint.every=1", *overrides)
                self.stop_at(20, *every, ranks=ranks)
                broken = ("optimizer.lr=1000", "optimizer.warmup=0", "optimizer.clip=0", "optimizer.max_skipped=5", *every)
                # Gradients remain finite for some steps, so broken weights are saved.
                stopped = self.stop_at(23, *broken, first=20, ranks=ranks)
                self.assertIn("step_00000020", self.checkpoints())
                self.assertIn("saved/step_00000020 is the newest checkpoint from before that", stopped.stdout)
                result = self.expect(
                    self.train("train.steps=1000", *broken, ranks=ranks),
                    5,
                    "not finite in 5 steps in a row",
                    "saved/step_00000020 is the newest checkpoint from before that",
                )
                self.assertIn("the loss left its range after step 20", result.stdout)  # the step it resumed from
                self.assertIn("the loss left its range after step 20", result.stderr)
                self.assertIn("step_00000020", self.checkpoints())
                command = result.stderr.split("to go back to it: ")[1].splitlines()[0]
                subprocess.run(command, shell=True, cwd=self.folder, check=True)
                self.assertEqual(max(self.checkpoints()), "step_00000020")
                back = self.stop_at(23, *every, first=20, ranks=ranks)
                self.assertIn("resumed from saved/step_00000020", back.stdout)
                self.assertNotIn("left its range", back.stdout)

    def test_a_stop_amid_skipped_steps_pushes_out_no_good_one(self):
        self.stop_at(20, "checkpoint.every=10", "checkpoint.keep=2")
        common = ("checkpoint.every=10", "checkpoint.keep=2", "optimizer.max_skipped=35", *DIVERGING)
        for first in (20, 30, 40):
            self.stop_at(first + 10, *common, first=first)
        self.assertEqual(
            self.checkpoints(), ["step_00000010", "step_00000020", "step_00000030", "step_00000040", "step_00000050"]
        )
        self.stop_at(1000, *common, first=50, code=5)

    def test_the_last_steps_were_skipped(self):
        self.stop_at(20)
        again = ("optimizer.max_skipped=35", *DIVERGING)
        for _ in range(2):  # a checkpoint with older weights does not make this a success
            result = self.expect(self.train("train.steps=40", *again, ranks=2), 5, "steps were skipped")
            self.assertIn("move later ones away", result.stderr)
        self.assertEqual([r["reason"] for r in self.metrics("end")], ["max_steps", "diverged", "diverged"])
        self.assertEqual(self.checkpoints(), ["step_00000020", "step_00000040"])
        # Nothing since step 40 justifies another checkpoint.
        self.expect(self.train("train.steps=45", *again), 5, "steps were skipped")
        self.assertEqual(self.checkpoints(), ["step_00000020", "step_00000040"])

    def test_in_fp16_a_checkpoint_waits_for_a_good_step(self):
        fp16 = ("train.precision=fp16", "optimizer.loss_scale=16777216", "optimizer.loss_scale_window=3", "train.steps=12")
        self.expect(self.train(*fp16, "checkpoint.every=1", "checkpoint.keep=0", ranks=2), 0)
        good = [r["step"] + 1 for r in self.metrics("step") if not r["skipped"]]
        self.assertLess(len(good), 12)
        self.assertEqual([r["step"] for r in self.metrics("checkpoint")], good + ([12] if 12 not in good else []))


class SpecialFiles(RestartTest):
    """Files that are not regular are refused. The start used to wait for ever."""

    def test_pipes_for_shard_and_manifest(self):
        for name in ("shard_00000.h5", "manifest.h5"):
            shutil.rmtree(self.saved, ignore_errors=True)
            self.stop_at(4, "checkpoint.every=2")
            path = self.saved / "step_00000004" / name
            path.unlink()
            os.mkfifo(path)
            self.expect(
                self.run_kzero("inspect", "--verify", "saved"),
                4,
                f"step_00000004/{name}: is a pipe, a device or a socket, not a regular file",
            )
            result = self.stop_at(4, first=2, ranks=2)
            self.assertIn("passed over: saved/step_00000004", result.stderr)
            self.assertIn("not a regular file", result.stderr)

    def test_a_pipe_for_the_lock(self):
        self.saved.mkdir()
        os.mkfifo(self.lock)
        self.expect(self.train(ranks=2), 4, "saved/lock: should say which run writes into its folder")

    def test_nothing_is_written_through_links(self):
        victim, place = self.folder / "victim", self.folder / "place"
        victim.write_text("precious")
        place.mkdir()
        self.saved.mkdir()
        (self.saved / "latest.partial").symlink_to(victim)
        (self.saved / "latest").symlink_to(victim)
        (self.saved / "step_00000006.partial").symlink_to(place)
        self.expect(self.train(), 0)
        self.assertEqual(victim.read_text(), "precious")
        self.assertEqual(list(place.iterdir()), [])
        self.assertEqual((self.saved / "latest").read_text(), "step_00000006\n")


if __name__ == "__main__":
    unittest.main()
