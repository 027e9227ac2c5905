"""Batch sizes that change with the step (train.phase): plans, runs on any ranks, and restarts. Arguments: names of test classes."""

import json
import shutil
import unittest

from launch import DECK, USES_NCCL, LaunchTest, steps_of

PHASES = """
[[train.phase]]
from_step = 2
global_batch = 12
[[train.phase]]
from_step = 4
global_batch = 6
"""
TOKENS = [11 * size for size in (4, 4, 12, 12, 6, 6)]
RATES = ("--tflops", "1", "--memory-bandwidth", "10GB", "--bandwidth", "1GB")


class Phases(LaunchTest):
    def setUp(self):
        super().setUp()
        (self.folder / "deck.toml").write_text(DECK + PHASES)
        (self.folder / "plain.toml").write_text(DECK)

    def steps(self, name):
        return steps_of(self.folder / name)

    def plan(self, deck, *overrides):
        result = self.expect(self.run_kzero("plan", deck, *overrides, "--ranks", "2", "--json", *RATES), 0)
        return json.loads(result.stdout)[0]

    def test_any_ranks_and_any_restart_give_the_same_bits(self):
        self.expect(self.train("checkpoint.folder=", "run.metrics=alone.jsonl"), 0)
        alone = self.steps("alone.jsonl")
        self.assertEqual([step[-1] for step in alone], TOKENS)
        for ranks, stage in ((2, 0), (2, 3), (3, 0), (3, 3)):
            metrics = f"{ranks}_{stage}.jsonl"
            settings = (f"zero.stage={stage}", f"run.metrics={metrics}", f"checkpoint.folder={ranks}_{stage}")
            for stop in (1, 1, 1, 1):
                self.expect(self.train(f"run.max_steps={stop}", *settings, ranks=ranks), 75)
            result = self.expect(self.train(*settings, ranks=ranks), 0)
            self.assertIn("resumes bit for bit\n", result.stdout)
            self.assertIn("steps       6 of 44 tokens, 132 from step 2 on, 66 from step 4 on, resuming at 4", result.stdout)
            self.assertEqual(self.steps(metrics), alone, metrics)

    def test_a_new_batch_on_a_restart_is_a_phase(self):
        (self.folder / "known.toml").write_text(DECK + "[[train.phase]]\nfrom_step = 3\nglobal_batch = 8\n")
        self.expect(self.run_kzero("train", "known.toml", "checkpoint.folder=", "run.metrics=known.jsonl"), 0)
        self.expect(self.run_kzero("train", "plain.toml", "run.max_steps=3"), 75)
        result = self.expect(self.run_kzero("train", "plain.toml", "train.global_batch=8", ranks=2), 0)
        self.assertIn(
            "batches have 8 sequences from step 3 on; their first sample is number 12, the next in the order, so none is "
            "repeated or left out\n",
            result.stdout,
        )
        self.assertIn("does not resume bit for bit: train.global_batch is 8, was 4\n", result.stdout)
        self.assertEqual(self.steps("metrics.jsonl"), self.steps("known.jsonl"))
        inspected = self.expect(self.run_kzero("inspect", "saved/step_00000006"), 0).stdout
        self.assertRegex(inspected, r"\b36 samples\b")
        # The checkpoint knows how many samples the run has read, which no key of this deck says.
        again = self.run_kzero("train", "plain.toml", "train.global_batch=8", "train.steps=7", ranks=2)
        self.assertIn("resuming at 6", self.expect(again, 0).stdout)
        inspected = self.expect(self.run_kzero("inspect", "saved/step_00000007"), 0).stdout
        self.assertRegex(inspected, r"\b44 samples\b")

    def test_a_change_of_later_batches_counts_from_its_step_on(self):
        settings = ("run.replay=check", "checkpoint.every=1")
        self.expect(self.train(*settings, "run.max_steps=5"), 75)
        shutil.rmtree(self.folder / "saved/step_00000005")
        shutil.rmtree(self.folder / "saved/step_00000004")
        result = self.expect(self.train(*settings, "train.phase[1].global_batch=8", "run.max_steps=2"), 75)
        self.assertIn("batches have 8 sequences from step 4 on; their first sample is number 32, ", result.stdout)
        self.assertIn(
            "resumes bit for bit until step 4, which has the first batch of another size than before\n", result.stdout
        )
        self.assertIn("replay      steps 3 to 3 are compared", result.stdout)
        self.assertIn("the steps up to 3 came out as recorded", result.stdout)
        over = self.expect(self.train(*settings, "train.phase[1].global_batch=8", "train.global_batch=8"), 0)
        self.assertIn("resumes bit for bit\n", over.stdout)
        self.assertNotIn("batches have", over.stdout)

    @unittest.skipIf(USES_NCCL, "NCCL counts other messages")
    def test_a_run_takes_and_sends_what_was_planned(self):
        planned = self.plan("deck.toml", "zero.stage=2")
        sizes = [(phase["first_step"], phase["steps"], phase["sequences"]) for phase in planned["phases"]]
        self.assertEqual(sizes, [(0, 2, 4), (2, 2, 12), (4, 2, 6)])
        self.assertEqual([phase["micro_batches"] for phase in planned["phases"]], [4, 12, 6])
        self.assertEqual([phase["rounds"] for phase in planned["phases"]], [2, 6, 3])
        self.assertEqual(planned["run_tokens"], sum(TOKENS))
        self.assertGreaterEqual(planned["total_bytes"], max(phase["total_bytes"] for phase in planned["phases"]))
        for phase in planned["phases"]:
            one = self.plan("plain.toml", "zero.stage=2", f"train.global_batch={phase['sequences']}")
            self.assertEqual(phase["total_bytes"], one["total_bytes"])
            self.assertEqual(phase["sent_bytes"], sum(row["bytes_per_step"] for row in one["traffic"]))
        self.expect(self.train("zero.stage=2", ranks=2), 0)
        (end,) = self.metrics("end")
        for row in end["traffic"]:
            self.assertEqual(row["elements_per_step"], row["expected_elements_per_step"], row)
        sent = sum(row["bytes_per_step"] for row in end["traffic"])
        self.assertEqual(sent, sum(p["steps"] * p["sent_bytes"] for p in planned["phases"]) // 6)
        for name, planned_bytes in planned["memory"].items():
            peaks = [row["categories"][name]["peak_bytes"] for row in end["memory"]]
            self.assertEqual(planned_bytes, max(peaks), name)
        text = self.expect(self.run_kzero("plan", "deck.toml", "--ranks", "2", *RATES), 0).stdout
        self.assertRegex(text, r"\nfrom 2 +2 +12 +12 +6 ")
        self.assertIn("484 of the run", text)

    def test_costs_of_a_number_of_tokens_need_one_size(self):
        self.expect(
            self.run_kzero("plan", "deck.toml", "--ranks", "2", "--tokens", "1e6", *RATES),
            2,
            "--tokens needs steps of one size, but the deck has [[train.phase]]; its run of all train.steps reads 484 tokens",
        )


if __name__ == "__main__":
    unittest.main()
