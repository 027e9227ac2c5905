"""Maximal update parametrization (model.base_width): the coordinate check of Yang et al. (arXiv 2203.03466, appendix D.1), in numpy
from the weights of checkpoints, and exports. `--figure` prints the sizes of activations at all widths, and tests nothing."""

import json
import sys
import unittest

import numpy as np
from launch import LaunchTest, arrays_of

BASE, WIDTHS, STEPS, HEADS, LAYERS, TOKENS = 64, (64, 128, 256, 512), 8, 4, 2, 32
DECK = """
[model]
family = "llama"
layers = {layers}
hidden = {width}
heads = {heads}
feed_forward = {feed_forward}
sequence = {tokens}
vocab = 256
init_std = 0.1
init = "normal"
{base}
[train]
steps = {steps}
global_batch = 4
micro_batch = 4
[optimizer]
kind = "{kind}"
lr = {lr}
schedule = "constant"
warmup = 0
clip = 0.0
weight_decay = 0.1
[data]
files = ["text"]
[checkpoint]
folder = "{folder}"
[run]
peak_tflops = 1.0
"""
RATES = {"adamw": 4e-3, "lion": 1e-3, "muon": 1e-2}


def norm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * weight


def rotated(x):
    """Rotary positions of x [heads, tokens, head width], whose halves are the pairs."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] * 10000.0 ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], axis=-1)


class Coordinates:
    """The mean size of each activation's coordinates, for the first tokens of a text."""

    def __init__(self, checkpoint, width, text, scale, divisor):
        arrays = {name.removesuffix("/master"): a.astype(np.float64) for name, a in arrays_of(checkpoint).items()}
        table = arrays["model.embed_tokens.weight"].reshape(256, width)
        self.sizes = {}
        x = self.taken("embedding", table[list(text[:TOKENS])])
        for i in range(LAYERS):
            prefix = f"model.layers.{i}."

            def product(y, name, prefix=prefix):
                return y @ arrays[f"{prefix}{name}.weight"].reshape(-1, y.shape[-1]).T

            y = norm(x, arrays[prefix + "input_layernorm.weight"])
            q, k, v = (product(y, f"self_attn.{n}_proj").reshape(TOKENS, HEADS, -1).transpose(1, 0, 2) for n in "qkv")
            scores = np.where(np.tri(TOKENS), rotated(q) @ rotated(k).transpose(0, 2, 1) * scale, -np.inf)
            self.taken(f"scores {i}", scores[:, np.tri(TOKENS) > 0])
            shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
            shares /= shares.sum(axis=-1, keepdims=True)
            x = x + product((shares @ v).transpose(1, 0, 2).reshape(TOKENS, width), "self_attn.o_proj")
            y = norm(x, arrays[prefix + "post_attention_layernorm.weight"])
            gate = product(y, "mlp.gate_proj")
            x = x + product(gate / (1 + np.exp(-gate)) * product(y, "mlp.up_proj"), "mlp.down_proj")
            self.taken(f"stream {i}", x)
        logits = self.taken("logits", norm(x, arrays["model.norm.weight"]) @ table.T / divisor)
        log_z = np.log(np.exp(logits).sum(axis=-1))
        self.loss = float(np.mean(log_z - logits[np.arange(TOKENS), list(text[1 : TOKENS + 1])]))

    def taken(self, name, values):
        self.sizes[name] = float(np.mean(np.abs(values)))
        return values


class MupTest(LaunchTest):
    def write(self, name, width, base, kind="adamw", lr=None, more=""):
        settings = {"layers": LAYERS, "heads": HEADS, "tokens": TOKENS, "steps": STEPS, "kind": kind, "folder": name}
        text = DECK.format(
            width=width, feed_forward=4 * width, base=f"base_width = {base}" if base else "", lr=lr or RATES[kind], **settings
        )
        (self.folder / f"{name}.toml").write_text(text + more)

    def coordinates(self, width, base, kind="adamw"):
        """Their sizes after the steps, of a run on one rank."""
        name = f"{kind}_{width}_{base}"
        self.write(name, width, base, kind)
        self.expect(self.run_kzero("train", f"{name}.toml"), 0)
        head = width // HEADS
        scale, divisor = (8 / head, width / base) if base else (head**-0.5, 1)
        checkpoint = self.folder / name / f"step_{STEPS:08d}"
        return Coordinates(checkpoint, width, (self.folder / "text").read_bytes(), scale, divisor).sizes

    def growth(self, base, kind="adamw", widths=WIDTHS):
        """{activation: its sizes at all widths}."""
        all_sizes = [self.coordinates(width, base, kind) for width in widths]
        return {name: [sizes[name] for sizes in all_sizes] for name in all_sizes[0]}


class Check(MupTest):
    def test_activations_keep_their_size_at_any_width(self):
        """Scores that no step has aligned fall with the root of a head's width, and must not grow; all else stays."""
        for kind, widths in (("adamw", WIDTHS), ("lion", WIDTHS[::3]), ("muon", WIDTHS[::3])):
            for name, sizes in self.growth(BASE, kind, widths).items():
                limit = sizes[0] if name.startswith("scores") else 2 * min(sizes)
                self.assertLessEqual(max(sizes), limit, f"{kind}: {name} {sizes}")

    def test_without_it_they_grow(self):
        for kind in RATES:
            sizes = self.growth(0, kind, WIDTHS[::3])
            for name in ("scores 1", "stream 1"):
                self.assertGreater(sizes[name][-1], 5 * sizes[name][0], f"{kind}: {name} {sizes[name]}")

    def test_the_base_width_itself_changes_only_the_scale_of_scores(self):
        self.write("with", BASE, BASE)
        self.write("without", BASE, 0)
        shown = [
            self.expect(self.run_kzero("train", f"{deck}.toml", f"model.attention_scale={8 * HEADS / BASE}"), 0).stdout
            for deck in ("with", "without")
        ]
        losses = [[line for line in text.splitlines() if "loss" in line] for text in shown]
        self.assertEqual(*[[line.split("loss")[1].split()[0] for line in lines] for lines in losses])


class Reports(MupTest):
    def test_the_start_names_the_factors(self):
        for kind, rate in (("adamw", "0.25"), ("muon", "0.5")):
            self.write(kind, 128, 32, kind)
            self.assertIn(
                "base width  model.hidden = 128 is 4 times model.base_width: learning rates of hidden matrices "
                f"x {rate}, scores x 0.25, logits / 4\n",
                self.expect(self.run_kzero("train", f"{kind}.toml", "train.steps=1"), 0).stdout,
            )
        self.write("none", 128, 0)
        self.assertNotIn("base width", self.expect(self.run_kzero("train", "none.toml", "train.steps=1"), 0).stdout)

    def test_another_base_width_is_another_model(self):
        self.write("run", 128, 32)
        self.expect(self.run_kzero("train", "run.toml", "run.max_steps=1"), 75)
        for base in (64, 0):
            refusal = f"is of another model (model.base_width is {base}, was 32: model."
            self.expect(self.run_kzero("train", "run.toml", f"model.base_width={base}"), 2, refusal)


class Exports(MupTest):
    def test_an_export_has_the_factors_of_granite(self):
        self.write("run", 128, 32)
        self.expect(self.run_kzero("train", "run.toml", f"train.steps={STEPS}"), 0)
        checkpoint = f"run/step_{STEPS:08d}"
        self.expect(self.run_kzero("convert", checkpoint, "out"), 0)
        config = json.loads((self.folder / "out/config.json").read_text())
        self.assertEqual(config["model_type"], "granite")
        self.assertEqual((config["attention_multiplier"], config["logits_scaling"]), (8 / 32, 4.0))
        text = (self.folder / "text").read_bytes()
        (self.folder / "few").write_bytes(text[: TOKENS + 1])
        expected = Coordinates(self.folder / checkpoint, 128, text, 8 / 32, 4).loss
        for model in ("run", "out"):
            result = self.expect(self.run_kzero("evaluate", model, "few", "--format", "bytes", "--json"), 0)
            self.assertAlmostEqual(json.loads(result.stdout)["results"][0]["loss"], expected, places=5, msg=model)

    def test_an_export_is_read_with_the_deck_that_trained_it(self):
        """The export has numbers where the deck has a scale of 0, which means such a number."""
        for name, base, change in (("run", 32, ()), ("divided", 0, ("model.logit_divisor=2.0",))):
            self.write(name, 128, base)
            self.expect(self.run_kzero("train", f"{name}.toml", "train.steps=1", *change), 0)
            self.expect(self.run_kzero("convert", f"{name}/step_00000001", f"{name}.out"), 0)
            start = (f"model.initial={name}.out", "checkpoint.folder=", "train.steps=1", *change)
            self.expect(self.run_kzero("train", f"{name}.toml", *start), 0)
            refused = self.run_kzero("train", f"{name}.toml", *start, "model.embedding_scale=2.0")
            self.assertIn("embedding_multiplier is 1.0, model.embedding_scale is 2.0", refused.stderr)

    def test_a_class_without_factors_is_refused(self):
        self.write("run", 128, 32)
        trained = self.expect(self.run_kzero("train", "run.toml", "train.steps=1", "model.qk_norm=true"), 0)
        checked = self.expect(self.run_kzero("check", "run.toml", "model.qk_norm=true"), 0)
        for told in (trained, checked):
            self.assertIn("kzero convert cannot export this model", told.stdout)
        self.assertNotIn("cannot export", self.expect(self.run_kzero("check", "run.toml"), 0).stdout)
        refused = self.run_kzero("convert", "run/step_00000001", "out")
        self.assertEqual(refused.returncode, 4, refused.stderr)
        self.assertIn("model.logit_divisor", refused.stderr)


def figure():
    test = MupTest()
    for kind in RATES:
        for base in (BASE, 0):
            test.setUp()
            print(kind, f"base_width {base}", f"widths {WIDTHS}")
            for name, sizes in test.growth(base, kind).items():
                print(f"  {name:<12}", " ".join(f"{size:8.3f}" for size in sizes))
            test.doCleanups()


if __name__ == "__main__":
    figure() if "--figure" in sys.argv else unittest.main()
