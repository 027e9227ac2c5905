"""Weights of Hugging Face from outside: what config.json says is heeded, nothing of others is overwritten, nothing commands the terminal."""

import json
import os
import struct
import unittest

from launch import LaunchTest, arrays_of


def tensors_of(path):
    """{name: (dtype, shape, bytes)} of a safetensors file."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + length:][slice(*t["data_offsets"])]) for name, t in header.items()}


def write_tensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class HuggingFace(LaunchTest):
    def setUp(self):
        super().setUp()
        self.expect(self.train("train.steps=2"), 0)
        self.expect(self.run_kzero("convert", "saved", "hf"), 0)
        self.config = json.loads((self.folder / "hf/config.json").read_text())

    def convert(self, *arguments):
        return self.run_kzero("convert", *arguments)

    def into(self, folder, weights="hf", *more):
        return self.convert(weights, folder, "--deck", "deck.toml", *more)

    def start_from(self, weights, **options):
        return self.train(f"model.initial={weights}", "checkpoint.folder=", "run.metrics=", "train.steps=2", **options)

    def test_another_function_of_the_same_weights_is_refused(self):
        for key, value, shown in (("n_head", 4, "n_head is 4, model.heads is 3"), ("activation_function", "relu", 'is "relu"; kzero computes'),
                                  ("layer_norm_epsilon", 1e-6, "model.layernorm_eps is 1e-05"),
                                  ("scale_attn_weights", False, "scale_attn_weights is false"),
                                  ("scale_attn_by_inverse_layer_idx", True, "scale_attn_by_inverse_layer_idx is true"),
                                  ("model_type", "gptj", 'model_type is "gptj"')):
            (self.folder / "hf/config.json").write_text(json.dumps({**self.config, key: value}))
            self.expect(self.into("back"), 4, "hf/config.json: ", shown)
        self.expect(self.start_from("hf/model.safetensors", ranks=2), 4, 'model_type is "gptj"')
        self.assertFalse((self.folder / "back").exists())

    def test_without_a_config_a_note_says_what_was_not_compared(self):
        self.assertNotIn("\nnote ", self.expect(self.start_from("hf"), 0).stdout)
        (self.folder / "hf/config.json").unlink()
        for shown in (self.expect(self.into("back"), 0).stdout, self.expect(self.start_from("hf/model.safetensors", ranks=2), 0).stdout):
            self.assertRegex(shown, "(?m)^note +no config.json beside hf(/model.safetensors)?: the number of heads")
            self.assertEqual(shown.count("no config.json"), 1)

    def test_a_set_of_files_is_the_model(self):
        tensors = tensors_of(self.folder / "hf/model.safetensors")
        (self.folder / "set").mkdir()
        names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
        placed = {name: names[i % 2] for i, name in enumerate(tensors)}
        for file in names:
            write_tensors(self.folder / "set" / file, {n: t for n, t in tensors.items() if placed[n] == file})
        (self.folder / "set/model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": placed}))
        (self.folder / "set/config.json").write_text(json.dumps(self.config))
        self.expect(self.into("one"), 0)
        self.expect(self.into("two", "set"), 0)
        one, two = (arrays_of(self.folder / p / "step_00000000") for p in ("one", "two"))
        self.assertEqual({n: a.tobytes() for n, a in one.items()}, {n: a.tobytes() for n, a in two.items()})
        self.expect(self.start_from("set", ranks=2), 0)
        (self.folder / "set" / names[1]).unlink()
        self.expect(self.start_from("set", ranks=2), 4, names[1])

    def test_files_of_others_are_not_overwritten(self):
        (self.folder / "config.json").write_text("{}")
        self.expect(self.convert("saved", "model.safetensors"), 4, "config.json: exists and was not written by kzero")
        self.assertEqual((self.folder / "config.json").read_text(), "{}")
        self.assertFalse((self.folder / "model.safetensors").exists())
        self.expect(self.convert("saved", "text"), 2, "text: is a file")
        shown = self.expect(self.convert("saved", "new/folder"), 0).stdout
        self.assertEqual(shown, "wrote new/folder/model.safetensors and new/folder/config.json\n")
        self.expect(self.convert("saved", "new/folder"), 0)
        self.assertEqual(sorted(p.name for p in (self.folder / "new/folder").iterdir()), ["config.json", "model.safetensors"])

    def test_options_that_would_do_nothing_are_errors(self):
        self.expect(self.convert("saved", "again", "--set", "model.heads=2"), 2, "--deck")
        self.expect(self.convert("hf/model.safetensors", "again"), 2, "--deck DECK")
        self.assertFalse((self.folder / "again").exists())

    def test_values_that_are_not_finite_are_named(self):
        tensors = tensors_of(self.folder / "hf/model.safetensors")
        dtype, shape, values = tensors["ln_f.bias"]
        tensors["ln_f.bias"] = (dtype, shape, values[:20] + struct.pack("<f", float("nan")) + values[24:])
        write_tensors(self.folder / "hf/model.safetensors", tensors)
        problem = "hf/model.safetensors: ln_f.bias [5] is NaN; weights have to be finite"
        self.expect(self.into("back"), 4, problem)
        self.expect(self.start_from("hf", ranks=2), 4, problem)
        self.assertFalse((self.folder / "back").exists())

    def test_a_pipe_is_refused_without_waiting(self):
        os.mkfifo(self.folder / "pipe.safetensors")
        self.expect(self.into("back", "pipe.safetensors"), 4, "pipe.safetensors: is a pipe")
        self.expect(self.start_from("pipe.safetensors", ranks=2), 4, "pipe.safetensors: is a pipe")

    def test_names_from_outside_do_not_command_the_terminal(self):
        tensors = tensors_of(self.folder / "hf/model.safetensors")
        tensors["evil\x1b[2J"] = tensors["ln_f.bias"]
        write_tensors(self.folder / "hf/model.safetensors", tensors)
        self.expect(self.into("back"), 4, "evil\\x1b[2J is not a parameter")
        (self.folder / "deck\x1b[2J.toml").write_text("[model]\nhidden = 12\nheads = 5\n")
        for arguments in (("check", "deck\x1b[2J.toml"), ("check", "deck.toml", "model.hidden\x1b[2J=1"), ("check", "none\x1b[2J.toml"),
                          ("inspect", "none\x1b[2J"), ("inspect", "saved", "--verify\x1b[2J")):
            result = self.run_kzero(*arguments)
            self.assertNotEqual(result.returncode, 0, arguments)
            self.assertNotIn("\x1b", result.stdout + result.stderr, arguments)
            self.assertIn("[2J", result.stdout + result.stderr, arguments)


if __name__ == "__main__":
    unittest.main()
