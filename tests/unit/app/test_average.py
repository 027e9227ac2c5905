"""Averages of checkpoints from outside. Arguments: names of test classes; none: all."""

import json
import re
import shutil
import unittest

import numpy as np
from launch import LaunchTest, arrays_of, steps_of
from test_optimizer import weights_of

REST = ("checkpoint.every=1", "checkpoint.keep=0", "run.metrics=")


class AverageTest(LaunchTest):
    def convert(self, *arguments):
        return self.run_kzero("convert", *arguments)

    def weights(self, path, *options):
        self.expect(self.convert(path, path.replace("/", "_") + ".hf", *options), 0)
        return weights_of(self.folder / (path.replace("/", "_") + ".hf") / "model.safetensors")

    def average(self, rule, *paths):
        self.expect(self.convert(*paths, "averaged", "--average", rule), 0)
        found = weights_of(self.folder / "averaged/model.safetensors")
        shutil.rmtree(self.folder / "averaged")
        return found

    def require_same(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        for name, values in expected.items():
            self.assertEqual(found[name].tobytes(), values.tobytes(), name)


def numpy_average(numbers, parts):
    """Products and sums in float64, in order; rounded once."""
    averaged = {}
    for name in parts[0]:
        total = np.float64(numbers[0]) * parts[0][name].astype("f8")
        for number, part in zip(numbers[1:], parts[1:], strict=True):
            total = total + np.float64(number) * part[name].astype("f8")
        averaged[name] = total.astype("f4")
    return averaged


class Sums(AverageTest):
    def test_parts_of_any_grid_and_stage_are_added_as_numpy_adds_them(self):
        # Each run has other weights, so that an average of one part with itself is not mistaken for one.
        for name, ranks, *rest in (
            ("one", 1, "train.seed=1"),
            ("two", 2, "train.seed=2", "zero.stage=3"),
            ("tensor", 3, "train.seed=3", "grid.tensor=3", "zero.stage=1", "checkpoint.ranks_per_file=3"),
        ):
            self.expect(self.train(*REST, *rest, f"checkpoint.folder={name}", ranks=ranks), 0)
        paths = ["one/step_00000002", "two/step_00000004", "tensor"]  # the folder's newest: step 6
        parts = [self.weights(path) for path in paths]
        # With fused multiplication and addition some values of these would be others.
        for numbers in ((1 / 3, 1 / 3, 1 / 3), (0.5, 0.3, 0.2), (1.1, -0.8, 0.7)):
            rule = "mean" if numbers[0] == 1 / 3 else ",".join(map(str, numbers))
            self.require_same(self.average(rule, *paths), numpy_average(numbers, parts))
        # The order counts, and the steps 2, 4, 6 give a linear decay half of the weight at its ends.
        self.require_same(
            self.average("0.2,0.5,0.3", paths[2], *paths[:2]), numpy_average((0.2, 0.5, 0.3), [parts[2], *parts[:2]])
        )
        self.require_same(self.average("linear", *paths), numpy_average((0.25, 0.5, 0.25), parts))

    def test_an_average_of_one_or_of_the_same_is_the_identity(self):
        self.expect(self.train("train.steps=3", "optimizer.ema=0.5", ranks=2), 0)
        weights = self.weights("saved")
        for rule, count in (("mean", 1), ("1", 1), ("mean", 3), ("0.25,0.75", 2)):
            self.require_same(self.average(rule, *["saved"] * count), weights)
        whole = (self.folder / "saved.hf/model.safetensors").read_bytes()
        self.expect(self.convert("saved", "again.safetensors", "--average", "mean"), 0)
        self.assertEqual((self.folder / "again.safetensors").read_bytes(), whole)
        shutil.rmtree(self.folder / "saved.hf")
        moving = self.weights("saved", "--ema")
        self.expect(self.convert("saved", "saved", "ema", "--average", "mean", "--ema"), 0)
        self.require_same(weights_of(self.folder / "ema/model.safetensors"), moving)


class Results(AverageTest):
    def test_a_checkpoint_has_weights_alone_and_starts_a_training_as_initial_weights_do(self):
        self.expect(self.train(*REST, ranks=2), 0)
        parts = ("saved/step_00000004", "saved/step_00000005", "saved/step_00000006")
        shown = self.expect(self.convert(*parts, "out", "--average", "1-sqrt"), 0).stdout
        # The means of 1 - sqrt(x) over both halves are w_1 = 1 - 4 / 3 sqrt(1/8), and the rest of 2/3.
        first = 1 - 4 / 3 * 0.125**0.5
        numbers = [float(number) for number in re.findall(r"(?m)^average     (\S+) of saved/step_0000000[456]$", shown)]
        np.testing.assert_allclose(numbers, (1 - first, 2 * first - 2 / 3, 2 / 3 - first), rtol=1e-12)
        for kind in ("adamw", "adafactor"):
            deck = ("--deck", "deck.toml", "--set", f"optimizer.kind={kind}")
            shown = self.expect(self.convert(*parts, kind, "--average", "1-sqrt", *deck), 0).stdout
            self.assertIn(f"wrote {kind}: weights alone, without the optimizer's state\n", shown)
            arrays = arrays_of(self.folder / kind / "step_00000000")
            self.assertEqual({name.rpartition("/")[2] for name in arrays}, {"master", "runs"})
            self.expect(self.run_kzero("inspect", "--verify", kind), 0)
            self.require_same(self.weights(kind), weights_of(self.folder / "out/model.safetensors"))
            key, metrics = f"optimizer.kind={kind}", f"run.metrics={kind}.jsonl"
            shown = self.expect(self.train(key, metrics, f"checkpoint.folder={kind}", ranks=2), 0).stdout
            self.assertIn(f"the checkpoint is of step 0: {kind} begins with its weights alone\n", shown)
            self.expect(self.train(key, "model.initial=out", "checkpoint.folder=", "run.metrics=initial.jsonl", ranks=2), 0)
            self.assertEqual(steps_of(self.folder / f"{kind}.jsonl"), steps_of(self.folder / "initial.jsonl"))
            (self.folder / "initial.jsonl").unlink()
        self.expect(self.convert(*parts, "adafactor", "--average", "mean", "--deck", "deck.toml"), 2, "is a checkpoint already")

    def test_adapters_stay_adapters_or_are_merged(self):
        self.expect(self.train("train.steps=2"), 0)
        self.expect(self.convert("saved", "base"), 0)
        lora = ("model.initial=base", "lora.rank=2", "lora.targets=c_attn,c_proj", *REST, "checkpoint.folder=tuned")
        self.expect(self.train(*lora, ranks=2), 0)
        parts = ("tuned/step_00000003", "tuned/step_00000006")
        values = []
        for part in parts:
            self.expect(self.convert(part, part[-1]), 0)
            values.append(weights_of(self.folder / part[-1] / "adapter_model.safetensors"))
        self.expect(self.convert(*parts, "mean", "--average", "mean"), 0)
        expected = numpy_average((0.5, 0.5), values)
        self.require_same(weights_of(self.folder / "mean/adapter_model.safetensors"), expected)
        # The checkpoint has the same adapters, and merged they are the same model.
        settings = [part for setting in (*lora[:3], "checkpoint.folder=") for part in ("--set", setting)]
        self.expect(self.convert(*parts, "ck", "--average", "mean", "--deck", "deck.toml", *settings), 0)
        self.expect(self.convert("ck", "same"), 0)
        self.require_same(weights_of(self.folder / "same/adapter_model.safetensors"), expected)
        self.expect(self.convert("ck", "merged", "--merge"), 0)
        self.expect(self.convert(*parts, "at_once", "--merge", "--average", "mean"), 0)
        self.require_same(*(weights_of(self.folder / name / "model.safetensors") for name in ("merged", "at_once")))
        self.expect(self.train(*lora[:-1], "checkpoint.folder=ck", ranks=2), 0)
        # Refusals: a deck without adapters, weights among adapters, and the same adapters on other weights.
        text = "holds adapters alone, but the deck trains all weights"
        self.expect(self.convert(*parts, "x", "--average", "mean", "--deck", "deck.toml"), 2, text)
        self.expect(self.convert("saved", parts[0], "x", "--average", "mean"), 2, "has other [lora] adapters than saved/step")
        self.expect(self.train("train.steps=3", "train.seed=5", "checkpoint.folder=other"), 0)
        self.expect(self.convert("other", "other_base"), 0)
        self.expect(self.train(*lora[1:-1], "model.initial=other_base", "checkpoint.folder=elsewhere"), 0)
        self.expect(self.convert(parts[0], "elsewhere", "x", "--average", "mean"), 2, "were trained on frozen weights of hash")
        self.assertFalse((self.folder / "x").exists())


class Refusals(AverageTest):
    def setUp(self):
        super().setUp()
        self.expect(self.train(*REST), 0)
        self.parts = ["saved/step_00000004", "saved/step_00000006"]

    def refuse(self, text, *arguments, code=2):
        self.expect(self.convert(*arguments), code, text)
        self.assertFalse((self.folder / "x").exists())

    def test_rules_that_are_none(self):
        for rule, text in (
            ("median", "--average has to be mean, linear, cosine, 1-sqrt, or numbers such as 0.5,0.3,0.2, found median"),
            ("0.5,", "numbers such as 0.5,0.3,0.2, found 0.5,"),
            ("0.5,nan", "numbers such as 0.5,0.3,0.2, found 0.5,nan"),
            ("0.5;0.5", "numbers such as 0.5,0.3,0.2, found 0.5;0.5"),
            ("0.5,0.3,0.2", "--average 0.5,0.3,0.2: there are 3 weights for 2 checkpoints"),
            ("1", "--average 1: there is 1 weight for 2 checkpoints"),
            ("0.3,0.6", "--average 0.3,0.6: the weights have to add up to 1, to within 1e-09, found 0.89999"),
        ):
            self.refuse(text, *self.parts, "x", "--average", rule)
        self.refuse(
            "--average cosine: a decay needs two checkpoints or more, found one", self.parts[0], "x", "--average", "cosine"
        )
        for first, second in ((1, 0), (0, 0)):
            steps = f"found {2 * first + 4} before {2 * second + 4}"
            paths = (self.parts[first], self.parts[second])
            self.refuse(f"the steps of the checkpoints have to ascend, {steps}", *paths, "x", "--average", "linear")
        self.refuse("there are 2 things to convert to x; --average makes one", *self.parts, "x")
        self.refuse("there are 2 things to convert to x", *self.parts, "x", "--deck", "deck.toml")
        self.refuse("model.heads=2: is no path but an override of --deck; write --set model.heads=2", "x", "y", "model.heads=2")

    def test_other_models_and_decks(self):
        self.expect(self.train("model.norm_eps=1e-3", "checkpoint.folder=other", "run.metrics="), 0)
        text = "other/step_00000006: is of another model than saved/step_00000004 (model.norm_eps is 0.001, was 1e-05)"
        self.refuse(text, self.parts[0], "other", "x", "--average", "mean")
        deck = ("--deck", "deck.toml", "--set", "model.heads=2")
        text = "saved/step_00000006: is of another model than the deck (model.heads is 2, was 3); set [model]"
        self.refuse(text, *self.parts, "x", "--average", "mean", *deck)
        self.expect(self.run_kzero("convert", *self.parts, "x", "--average", "mean", ranks=2), 2, "one rank")
        self.refuse("nowhere: holds no complete checkpoint", self.parts[0], "nowhere", "x", "--average", "mean", code=4)

    def test_values_that_are_not_finite(self):
        self.expect(self.convert(self.parts[1], "hf"), 0)
        weights = self.folder / "hf/model.safetensors"
        data = bytearray(weights.read_bytes())
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        at = 8 + int.from_bytes(data[:8], "little") + header["wte.weight"]["data_offsets"][0]
        data[at : at + 4] = np.float32(3e38).tobytes()
        weights.write_bytes(data)
        self.expect(self.convert("hf", "large", "--deck", "deck.toml"), 0)
        parts = ("large", self.parts[0])
        self.expect(self.convert(*parts, "y", "--average", "2,-1"), 4, "the average: wte.weight [0, 0] is infinity")
        self.assertEqual(list((self.folder / "y").iterdir()), [])
        self.expect(self.convert(*parts, "z", "--average", "2,-1", "--deck", "deck.toml"), 4, "the average: wte.weight [0, 0]")
        self.assertEqual([p for p in (self.folder / "z").glob("*") if p.name.startswith("step")], [])


if __name__ == "__main__":
    unittest.main()
