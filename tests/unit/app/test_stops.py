"""A stop signal within a validation or an evaluation ends the run between two micro-batches, and a restart completes it."""

import contextlib
import os
import signal
import subprocess
import time
import unittest

from launch import DECK, PATIENCE, LaunchTest, ranks_of, records, steps_of

EVALUATE = '\n[[evaluate]]\nname = "other"\nfiles = ["text"]\nevery = 3\n'
# Long enough that a signal sent at its beginning arrives before its end.
VALIDATING = ("data.validation_fraction=0.2", "train.validation_batches=1500")
VALIDATION = ("train.validate_every=3", *VALIDATING)
COMMON = ("train.steps=5", "model.hidden=48", "model.layers=2")


class EvaluationTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.saved = self.folder / "saved"

    def begin(self, *overrides, ranks):
        launch = subprocess.Popen(
            self.command(["train", "deck.toml", *overrides], ranks),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.addCleanup(lambda: (launch.kill(), launch.communicate()) if launch.poll() is None else None)
        return launch

    def starts(self):
        metrics = self.folder / "metrics.jsonl"
        return metrics.read_text().count('"event":"start"') if metrics.exists() else 0

    def wait_for_an_evaluation(self, launch, step, starts):
        """Until the launch, which has written start record number `starts`, evaluates after that step."""
        mark, end = self.saved / "unfinished_evaluation", time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                marked = mark.read_text().split("\n")[0]
                is_saved = step == 0 or (self.saved / f"step_{step:08}").exists()
                if marked == str(step) and is_saved and self.starts() == starts:
                    return
            self.assertIsNone(launch.poll(), "it ended before the evaluation")
            self.assertLess(time.monotonic(), end, "it did not evaluate")
            time.sleep(0.005)

    def stop_in_evaluation(self, *overrides, ranks, rank, step=3):
        """Signals one rank; returns what the run said."""
        starts = self.starts()
        launch = self.begin(*overrides, ranks=ranks)
        self.wait_for_an_evaluation(launch, step, starts + 1)
        os.kill(ranks_of(launch)[rank], signal.SIGTERM)
        said, _ = launch.communicate(timeout=PATIENCE)
        self.assertEqual(launch.returncode, 75, said)
        self.assertIn("stopped before its end; a restart completes it", said)
        self.assertIn(f"stopped by SIGTERM after step {step} of 5 with a checkpoint", said)
        return said

    def losses(self, name, event):
        return [(r["step"], r["loss"]) for r in records(self.folder / name, event)]

    def expect_the_same_run(self, event, whole="whole.jsonl"):
        self.assertEqual(self.losses("metrics.jsonl", event), self.losses(whole, event))
        self.assertEqual(steps_of(self.folder / "metrics.jsonl"), steps_of(self.folder / whole))
        self.assertFalse((self.saved / "unfinished_evaluation").exists())


class InEvaluations(EvaluationTest):
    def test_a_validation_is_stopped_and_done_in_full_by_the_restart(self):
        self.expect(self.train(*COMMON, *VALIDATION, "checkpoint.folder=whole", "run.metrics=whole.jsonl", ranks=2), 0)
        self.assertEqual([step for step, _ in self.losses("whole.jsonl", "validation")], [3, 5])
        for ranks, rank, way in ((1, 0, ()), (2, 1, ("checkpoint.asynchronous=true",)), (4, 2, ())):
            with self.subTest(f"{ranks} ranks"):
                subprocess.run(["rm", "-rf", self.saved, self.folder / "metrics.jsonl"], check=True)
                run = (*COMMON, *VALIDATION, "checkpoint.every=3", *way)
                self.stop_in_evaluation(*run, ranks=ranks, rank=rank)
                self.assertEqual(self.losses("metrics.jsonl", "validation"), [])
                self.assertEqual([r["steps"] for r in self.metrics("end")], [3])
                self.expect(self.train(*run, ranks=ranks), 0)
                self.expect_the_same_run("validation")

    def test_an_evaluation_is_stopped_and_done_in_full_by_the_restart(self):
        (self.folder / "deck.toml").write_text(DECK + EVALUATE)
        (self.folder / "text").write_bytes(b"".join(b"%d bottles of beer, " % i for i in range(4000)))
        self.expect(self.train(*COMMON, "checkpoint.folder=whole", "run.metrics=whole.jsonl", ranks=2), 0)
        for ranks in (1, 2, 4):
            with self.subTest(f"{ranks} ranks"):
                subprocess.run(["rm", "-rf", self.saved, self.folder / "metrics.jsonl"], check=True)
                run = (*COMMON, "checkpoint.every=1")
                self.stop_in_evaluation(*run, ranks=ranks, rank=ranks - 1)
                self.assertEqual(self.losses("metrics.jsonl", "evaluation"), [])
                self.expect(self.train(*run, ranks=ranks), 0)
                self.expect_the_same_run("evaluation")

    def test_the_last_evaluation_is_stopped_after_the_last_step(self):
        last = (*COMMON, *VALIDATING, "train.validate_every=1000")
        self.expect(self.train(*last, "checkpoint.folder=whole", "run.metrics=whole.jsonl", ranks=2), 0)
        self.stop_in_evaluation(*last, ranks=2, rank=1, step=5)
        # A signal may come repeatedly. The job is resubmitted each time.
        self.stop_in_evaluation(*last, ranks=2, rank=0, step=5)
        self.expect(self.train(*last, ranks=2), 0)
        self.assertEqual([r["reason"] for r in self.metrics("end")], ["signal", "signal", "completed"])
        self.expect_the_same_run("validation")
        again = self.expect(self.train(*last, ranks=2), 0)
        self.assertNotIn("validation after", again.stdout)
        self.assertEqual(self.metrics("end")[-1]["reason"], "nothing_to_do")

    def test_the_evaluation_before_the_first_step_is_done_in_full_by_the_restart(self):
        self.expect(self.train(*COMMON, "checkpoint.folder=first", "run.metrics="), 0)
        self.expect(self.run_kzero("convert", "first", "weights.safetensors"), 0)
        run = (*COMMON, *VALIDATING, "train.validate_every=1000", "model.initial=weights.safetensors")
        self.expect(self.train(*run, "checkpoint.folder=whole", "run.metrics=whole.jsonl", ranks=2), 0)
        self.assertEqual([step for step, _ in self.losses("whole.jsonl", "validation")], [0, 5])
        self.stop_in_evaluation(*run, ranks=2, rank=1, step=0)
        self.expect(self.train(*run, ranks=2), 0)
        self.expect_the_same_run("validation")

    def test_a_run_that_is_killed_within_one_completes_it_later(self):
        run = (*COMMON, *VALIDATION, "checkpoint.every=3")
        self.expect(self.train(*run, "checkpoint.folder=whole", "run.metrics=whole.jsonl", ranks=2), 0)
        launch = self.begin(*run, ranks=2)
        self.wait_for_an_evaluation(launch, 3, 1)  # its steps are saved first
        for pid in ranks_of(launch).values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        launch.communicate(timeout=PATIENCE)
        self.expect(self.train(*run, ranks=2), 0)
        self.expect_the_same_run("validation")

    def test_without_a_folder_it_ends_there(self):
        launch = self.begin(*COMMON, *VALIDATION, "checkpoint.folder=", ranks=2)
        metrics, end = self.folder / "metrics.jsonl", time.monotonic() + PATIENCE
        while not (metrics.exists() and metrics.read_text().count('"event":"step"') >= 3):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.005)
        os.kill(ranks_of(launch)[0], signal.SIGTERM)
        said, _ = launch.communicate(timeout=PATIENCE)
        self.assertEqual(launch.returncode, 1, said)
        self.assertIn("after step 3 of 5 without a checkpoint", said)
        self.assertEqual(self.losses("metrics.jsonl", "validation"), [])


if __name__ == "__main__":
    unittest.main()
