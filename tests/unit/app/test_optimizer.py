"""Options of the optimizer from outside: groups, skipped spikes, the average of weights. Arguments: names of test classes; none: all."""

import json
import struct
import unittest

import numpy as np
from launch import LaunchTest, records, steps_of

GROUPS = """
[[optimizer.group]]
match = "*bias"
lr_scale = {scale}
weight_decay = 0

[[optimizer.group]]
match = "w?e.weight"
"""


def weights_of(path):
    """{name: float32 array} of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[8 + length :][slice(*t["data_offsets"])], "f4") for name, t in header.items()}


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


class Kinds(OptimizerTest):
    def test_a_refusal_names_all_that_their_states_hold(self):
        self.expect(self.train("optimizer.kind=muon", "run.max_steps=1"), 75)
        arrays = "master, momentum, second_moment (not of hidden matrices)"
        self.expect(
            self.train("optimizer.kind=normuon"), 2,
            f"it holds {arrays}, the deck's optimizer keeps {arrays}, output_moments of its columns (optimizer.kind is ",
        )  # fmt: skip


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


class Average(OptimizerTest):
    def exported(self, name, *options):
        self.expect(self.run_kzero("convert", *options, str(self.folder / name)), 0)
        return weights_of(self.folder / name / "model.safetensors")

    def test_it_is_exported_and_evaluated(self):
        self.expect(self.train("optimizer.ema=0.75", "checkpoint.every=1", "checkpoint.keep=0", ranks=2), 0)
        before = self.exported("average5", "saved/step_00000005", "--ema")
        after = self.exported("average6", "saved/step_00000006", "--ema")
        weights = self.exported("weights6", "saved/step_00000006")
        for name, values in weights.items():
            np.testing.assert_allclose(after[name], before[name] + 0.25 * (values - before[name]), rtol=1e-6, atol=1e-7)
        self.assertTrue(any((after[name] != values).any() for name, values in weights.items()))
        losses = []
        for model in (("saved", "--ema"), ("average6",), ("weights6",)):
            scored = self.expect(self.run_kzero("evaluate", *model, "text", "--format", "bytes", "--batch", "1", "--json"), 0)
            losses.append(json.loads(scored.stdout)["results"][0]["loss"])
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0], losses[2])

    def test_a_checkpoint_without_one_is_refused(self):
        self.expect(self.train(), 0)
        for command in (("convert", "saved", "out"), ("evaluate", "saved", "text")):
            self.expect(self.run_kzero(*command, "--ema"), 2, "step_00000006: has no moving average of the weights")
        self.expect(self.run_kzero("convert", "saved", "out"), 0)
        self.expect(self.run_kzero("evaluate", "out", "text", "--ema"), 2, "out: is a Hugging Face folder")
        self.expect(self.train("train.steps=8", "optimizer.ema=0.9"), 2, "checkpoint.reset_optimizer = true")


if __name__ == "__main__":
    unittest.main()
