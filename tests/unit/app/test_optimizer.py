"""Options of the optimizer from outside: groups and skipped spikes. Arguments: names of test classes; none: all."""

import unittest

from launch import LaunchTest, records, steps_of

GROUPS = """
[[optimizer.group]]
match = "*bias"
lr_scale = {scale}
weight_decay = 0

[[optimizer.group]]
match = "w?e.weight"
"""


class OptimizerTest(LaunchTest):
    def add(self, text):
        deck = self.folder / "deck.toml"
        deck.write_text(deck.read_text() + text)


class Groups(OptimizerTest):
    def test_the_start_counts_their_parameters(self):
        self.add(GROUPS.format(scale=0.5))
        started = self.expect(self.train(ranks=2), 0).stdout
        # Biases of a block of width 12: 36 + 12 + 48 + 12, and 12 of each of three norms.
        self.assertIn('group       "*bias": 144 parameters in 7 tensors, lr x 0.5, weight decay 0', started)
        self.assertIn(
            f'group       "w?e.weight": {12 * (256 + 11)} parameters in 2 tensors, lr x 1, weight decay unchanged', started
        )
        self.assertIn(f"group       others: {12 * 12 * 12 + 3 * 12} parameters in 7 tensors", started)

    def test_a_pattern_without_parameters_is_an_error_of_the_deck(self):
        self.add('[[optimizer.group]]\nmatch = "*embed*"\n')
        line = (self.folder / "deck.toml").read_text().splitlines().index('match = "*embed*"') + 1
        for command, ranks in (("check", None), ("plan", None), ("train", 2)):
            self.expect(
                self.run_kzero(command, "deck.toml", ranks=ranks), 2,
                f'deck.toml:{line}:1: optimizer.group[0].match = "*embed*" matches no parameter of the model; '
                "its parameters are wte.weight, ..., ln_f.bias",
            )  # fmt: skip

    def test_a_changed_group_is_a_changed_learning_rate(self):
        self.add(GROUPS.format(scale=0.5))
        self.expect(self.train("train.steps=8", "run.max_steps=3", ranks=2), 75)
        (first,) = self.metrics("start")
        same = self.expect(self.train("train.steps=8", "run.max_steps=3"), 75).stdout
        self.assertIn("resumes bit for bit", same)
        self.assertEqual(self.metrics("start")[-1]["bits"], first["bits"])
        other = self.expect(self.train("train.steps=8", "optimizer.group[0].lr_scale=0.25"), 0).stdout
        self.assertIn("does not resume bit for bit: optimizer.group[0].lr_scale is 0.25, was 0.5", other)
        self.assertNotEqual(self.metrics("start")[-1]["bits"], first["bits"])


class Spikes(OptimizerTest):
    RULE = ("optimizer.skip_above=1.05", "optimizer.skip_window=3", "train.steps=20", "optimizer.warmup=0", "optimizer.lr=3e-2")

    def test_they_are_reported_and_counted(self):
        done = self.expect(self.train(*self.RULE, ranks=2), 0)
        steps = self.metrics("step")
        self.assertTrue(all("norm_limit" not in step for step in steps[:3]))
        self.assertTrue(all("norm_limit" in step for step in steps[3:]))
        spikes = [step for step in steps if step["skipped"]]
        self.assertTrue(spikes)
        for step in steps:
            self.assertEqual(step["skipped"], step["grad_norm"] > step.get("norm_limit", float("inf")))
        (end,) = self.metrics("end")
        self.assertEqual(end["spikes"], len(spikes))
        self.assertEqual(done.stdout.count("skipped: norm "), len(spikes))
        self.assertIn(f"optimizer.skip_above has skipped {len(spikes)} of all 20 steps", done.stdout)

    def test_a_restart_keeps_the_norms(self):
        self.expect(self.train(*self.RULE, "checkpoint.folder=", "run.metrics=straight.jsonl"), 0)
        for ranks in (2, 1, 4):
            self.expect(self.train(*self.RULE, "run.max_steps=6", ranks=ranks), 75)
        self.expect(self.train(*self.RULE, ranks=2), 0)
        self.assertEqual(steps_of(self.folder / "metrics.jsonl"), steps_of(self.folder / "straight.jsonl"))
        self.assertEqual(self.metrics("end")[-1]["spikes"], records(self.folder / "straight.jsonl", "end")[0]["spikes"])

    def test_many_in_a_row_end_the_run(self):
        # Only norms below the median are applied, so the median falls until most steps are above it.
        rule = ("optimizer.skip_above=1.0000001", "optimizer.skip_window=2", "optimizer.max_skipped=3", "train.steps=200")
        self.expect(
            self.train(*rule, ranks=2), 5, "3 steps in a row were skipped (optimizer.max_skipped = 3), 3 of them because"
        )
        self.assertEqual(self.metrics("end")[-1]["reason"], "diverged")


if __name__ == "__main__":
    unittest.main()
