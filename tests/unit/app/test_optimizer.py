"""Options of the optimizer from outside: skipped spikes. Arguments: names of test classes; none: all."""

import unittest

from launch import LaunchTest, records, steps_of


class Spikes(LaunchTest):
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
