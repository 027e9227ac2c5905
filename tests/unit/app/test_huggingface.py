"""Weights of Hugging Face from outside: what config.json says is heeded, nothing of others is overwritten, nothing commands the terminal."""

import json
import os
import shutil
import struct
import unittest
from pathlib import Path

from launch import LaunchTest, arrays_of, records, steps_of


def tensors_of(path):
    """{name: (dtype, shape, bytes)} of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + length :][slice(*t["data_offsets"])]) for name, t in header.items()}


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

    def test_given_weights_are_evaluated_before_the_first_step(self):
        validate = ("train.validate_every=2", "data.validation_fraction=0.2", "train.validation_batches=2")
        (self.folder / "held_out").write_text("wine, not beer, " * 20)
        with open(self.folder / "deck.toml", "a") as file:
            file.write('[[evaluate]]\nname = "wine"\nfiles = ["held_out"]\n')
        rest = (*validate, "model.initial=hf/model.safetensors", "train.steps=4")
        shown = self.expect(self.train(*rest, "checkpoint.folder=new", ranks=2), 0).stdout
        self.assertEqual([r["step"] for r in self.metrics("validation")], [0, 2, 4])
        self.assertEqual([(r["name"], r["step"]) for r in self.metrics("evaluation")], [("wine", 0), ("wine", 4)])
        first, _, last = (f"{r['loss']:.4f}" for r in self.metrics("validation"))
        self.assertIn(f"validation {last} ({first} before the first step)", shown.splitlines()[-2])
        self.assertRegex(shown.splitlines()[-1], r"^ +evaluation wine \d\.\d{4} \(\d\.\d{4} before the first step\)$")
        before = self.expect(self.run_kzero("evaluate", "hf", "held_out", "--json", "--format", "bytes"), 0)
        self.assertAlmostEqual(self.metrics("evaluation")[0]["loss"], json.loads(before.stdout)["results"][0]["loss"], places=5)
        # Random weights have nothing to compare with, and a restart has been compared.
        self.expect(self.train(*validate, "train.steps=4", "checkpoint.folder=", ranks=2), 0)
        self.assertEqual([r["step"] for r in self.metrics("validation")], [2, 4])
        self.expect(self.train(*rest[:-1], "train.steps=6", "checkpoint.folder=new", "run.metrics=again.jsonl"), 0)
        self.assertEqual([r["step"] for r in records(self.folder / "again.jsonl", "validation")], [6])

    def test_adapters_say_how_many_parameters_train(self):
        lora = ("lora.rank=2", "lora.targets=c_attn,c_proj", "model.initial=hf/model.safetensors")
        shown = self.expect(self.train(*lora, "checkpoint.folder=", "run.metrics="), 0).stdout
        # Of 5100 weights in the embeddings and the block; adapters of c_attn [12, 36] and both c_proj [12, 12], [48, 12].
        trained = 2 * (12 + 36) + 2 * (12 + 12) + 2 * (48 + 12)
        self.assertRegex(shown, rf"adapters    {trained} of \d+ parameters train\n")

    def test_another_function_of_the_same_weights_is_refused(self):
        for key, value, shown in (
            ("n_head", 4, "n_head is 4, model.heads is 3"),
            ("activation_function", "relu", 'is "relu"; kzero computes'),
            ("layer_norm_epsilon", 1e-6, "model.norm_eps is 1e-05"),
            ("scale_attn_weights", False, "scale_attn_weights is false"),
            ("scale_attn_by_inverse_layer_idx", True, "scale_attn_by_inverse_layer_idx is true"),
            ("model_type", "gptj", 'model_type is "gptj"'),
        ):
            (self.folder / "hf/config.json").write_text(json.dumps({**self.config, key: value}))
            self.expect(self.into("back"), 4, "hf/config.json: ", shown)
        self.expect(self.start_from("hf/model.safetensors", ranks=2), 4, 'model_type is "gptj"')
        self.assertFalse((self.folder / "back").exists())

    def test_without_a_config_a_note_says_what_was_not_compared(self):
        self.assertNotIn("\nnote ", self.expect(self.start_from("hf"), 0).stdout)
        (self.folder / "hf/config.json").unlink()
        for shown in (
            self.expect(self.into("back"), 0).stdout,
            self.expect(self.start_from("hf/model.safetensors", ranks=2), 0).stdout,
        ):
            self.assertRegex(shown, "(?m)^note +no config.json was found for hf(/model.safetensors)?: the number of heads")
            self.assertEqual(shown.count("no config.json"), 1)

    def test_new_tokens_get_rows_in_one_way(self):
        tensors = tensors_of(self.folder / "hf/model.safetensors")
        rows = lambda folder: tensors_of(self.folder / folder / "model.safetensors")["wte.weight"]
        vocab = tensors["wte.weight"][1][0]
        shown = self.expect(self.start_from("hf", ranks=2), 0).stdout
        self.assertNotIn("new rows", shown)
        shown = self.expect(self.into("larger", "hf", "--set", f"model.vocab={vocab + 2}"), 0).stdout
        self.assertIn(f"has {vocab} tokens and model.vocab is {vocab + 2}: new rows start as the mean of the others", shown)
        self.expect(self.convert("larger", "out"), 0)
        self.assertEqual(json.loads((self.folder / "out/config.json").read_text())["vocab_size"], vocab + 2)
        data, (_, shape, grown) = tensors["wte.weight"][2], rows("out")
        width = 4 * shape[1]
        self.assertEqual((shape[0], grown[: len(data)]), (vocab + 2, data))
        self.assertEqual(grown[len(data) : len(data) + width], grown[len(data) + width :])
        (self.folder / "hf/config.json").write_text(json.dumps({**self.config, "vocab_size": vocab + 2}))
        self.expect(self.into("damaged", "hf", "--set", f"model.vocab={vocab + 2}"), 4, "wte.weight")

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
        self.assertEqual(shown, "wrote model.safetensors, config.json, generation_config.json to new/folder\n")
        self.expect(self.convert("saved", "new/folder"), 0)
        self.assertEqual(self.names("new/folder"), ["config.json", "generation_config.json", "model.safetensors"])

    def test_weights_in_several_files_and_back_in_one(self):
        whole = tensors_of(self.folder / "hf/model.safetensors")
        shown = self.expect(self.convert("saved", "set", "--shard-size", "2kB"), 0).stdout
        files = sorted((self.folder / "set").glob("model-*.safetensors"))
        self.assertGreater(len(files), 2)
        self.assertEqual(
            shown,
            f"wrote {files[0].name} to {files[-1].name}, model.safetensors.index.json, config.json, "
            "generation_config.json to set\n",
        )
        self.assertEqual({n: t for file in files for n, t in tensors_of(file).items()}, whole)
        index = json.loads((self.folder / "set/model.safetensors.index.json").read_text())
        self.assertEqual(index["metadata"]["total_size"], sum(len(t[2]) for t in whole.values()))
        self.expect(self.into("back", "set"), 0)
        self.expect(self.start_from("set", ranks=2), 0)
        self.expect(self.convert("back", "set", "--shard-size", "1GiB"), 0)
        self.assertEqual(self.names("set"), ["config.json", "generation_config.json", "model.safetensors"])
        self.assertEqual(tensors_of(self.folder / "set/model.safetensors"), whole)

    def test_weights_of_sixteen_bits(self):
        self.expect(self.convert("saved", "half", "--dtype", "bfloat16"), 0)
        self.assertEqual({t[0] for t in tensors_of(self.folder / "half/model.safetensors").values()}, {"BF16"})
        self.assertEqual(json.loads((self.folder / "half/config.json").read_text())["torch_dtype"], "bfloat16")
        self.expect(self.into("back", "half"), 0)
        self.expect(self.convert("back", "again", "--dtype", "bfloat16"), 0)
        self.assertEqual(
            (self.folder / "again/model.safetensors").read_bytes(), (self.folder / "half/model.safetensors").read_bytes()
        )

    def test_the_tokenizer_of_the_first_weights_is_passed_on(self):
        (self.folder / "hf/tokenizer.json").write_text('{"version": "1.0"}')
        (self.folder / "hf/vocab.json").symlink_to("tokenizer.json")
        (self.folder / "hf/config.json").write_text(json.dumps({**self.config, "eos_token_id": 7}))
        for key in ("config", "initial"):
            self.expect(self.into("by_" + key, "hf", "--set", f"model.{key}=hf"), 0)
            self.assertEqual(self.expect(self.convert("by_" + key, "out_" + key), 0).stdout.count("note"), 0)
            out = self.folder / ("out_" + key)
            self.assertEqual((out / "tokenizer.json").read_text(), '{"version": "1.0"}')
            self.assertEqual((out / "vocab.json").read_text(), '{"version": "1.0"}')
            self.assertFalse((out / "vocab.json").is_symlink())
            self.assertEqual(json.loads((out / "config.json").read_text())["eos_token_id"], 7)
        (self.folder / "hf").rename(self.folder / "moved")
        self.expect(self.convert("by_initial", "late"), 0)
        self.assertEqual(self.names("late"), self.names("out_initial"))
        shutil.rmtree(self.folder / "by_initial/origin")  # of a version that kept nothing
        shown = self.expect(self.convert("by_initial", "later"), 0).stdout
        self.assertRegex(shown, "(?m)^note +there is no config.json in the folders of model.initial = ")
        self.assertEqual(self.names("later"), ["config.json", "generation_config.json", "model.safetensors"])

    def test_links_that_leave_the_folder_are_not_followed(self):
        (self.folder / "secret").write_text("a private key")
        for name in ("merges.txt", "tokenizer.json", "tokenizer_config.json", "config.json"):
            (self.folder / "hf" / name).unlink(missing_ok=True)
            (self.folder / "hf" / name).symlink_to("../secret")
            ours = f"ours_{name}"
            results = [self.into(ours), self.convert(ours, f"out_{name}")]
            shown = "".join(result.stdout + result.stderr for result in results)
            self.assertIn(f"hf/{name}: is a link to {self.folder}/secret, which is outside the model's folder", shown)
            self.assertNotIn("private", shown)
            for copy in (*self.folder.glob("ours_*/**/*"), *self.folder.glob("out_*/**/*")):
                self.assertFalse(copy.is_file() and b"a private key" in copy.read_bytes(), copy)
            (self.folder / "hf" / name).unlink()
        self.expect(self.start_from("hf/model.safetensors"), 0)
        (self.folder / "hf/model.safetensors").rename(self.folder / "weights")
        (self.folder / "hf/model.safetensors").symlink_to("../weights")
        self.expect(self.start_from("hf", ranks=2), 4, "hf/model.safetensors: is a link to ")
        self.expect(self.start_from("hf/model.safetensors", ranks=2), 0)  # the user names it
        cache = self.folder / "hub/models--a--b"
        (cache / "snapshots/1").mkdir(parents=True)
        (cache / "blobs").mkdir()
        (self.folder / "weights").rename(cache / "blobs/0123")
        (cache / "snapshots/1/model.safetensors").symlink_to("../../blobs/0123")
        self.expect(self.start_from("hub/models--a--b/snapshots/1"), 0)

    def test_messages_are_not_as_long_as_what_they_quote(self):
        tensors = tensors_of(self.folder / "hf/model.safetensors")
        for name, dtype in (("x" * 900000, "F32"), ("ln_f.bias", "x" * 900000)):
            write_tensors(self.folder / "long.safetensors", {**tensors, name: (dtype, *tensors["ln_f.bias"][1:])})
            result = self.expect(
                self.start_from("long.safetensors", ranks=2), 4, "long.safetensors: ", "bytes are left out here"
            )
            self.assertLess(len(result.stderr), 5000)

    def test_model_config_brings_the_architecture(self):
        brief = "[model]\nconfig = 'hf'\n" + (self.folder / "deck.toml").read_text().partition("\n\n")[2]
        (self.folder / "brief.toml").write_text(brief)
        self.expect(self.run_kzero("check", "brief.toml", "--files"), 0)
        sizes = [
            self.expect(
                self.run_kzero("plan", deck, "--json", "--tflops=1", "--bandwidth=1GB", "--memory-bandwidth=1GB"), 0
            ).stdout
            for deck in ("brief.toml", "deck.toml")
        ]
        self.assertEqual(sizes[0], sizes[1])
        runs = [
            self.run_kzero("train", deck, "train.steps=2", "checkpoint.folder=", f"run.metrics={deck}.jsonl", ranks=2)
            for deck in ("brief.toml", "deck.toml")
        ]
        for run in runs:
            self.expect(run, 0)
        self.assertEqual(*(steps_of(self.folder / f"{deck}.jsonl") for deck in ("brief.toml", "deck.toml")))
        for command in ("check", "plan"):
            self.expect(
                self.run_kzero(command, "brief.toml", "model.layers=2"),
                2,
                "model.layers = 2 contradicts model.config, where hf/config.json: n_layer is 1",
            )
        self.expect(self.run_kzero("train", "brief.toml", "model.layers=2", ranks=2), 2, "contradicts model.config")
        (self.folder / "hf/config.json").write_text(json.dumps({**self.config, "model_type": "gptj"}))
        self.expect(self.run_kzero("train", "brief.toml", ranks=2), 4, 'hf/config.json: model_type is "gptj"; kzero reads')
        self.expect(self.run_kzero("train", "deck.toml", "model.config=nowhere", ranks=2), 4, "nowhere")

    def test_defaults_print_the_model_of_a_config(self):
        model = self.expect(self.run_kzero("defaults", "--config", "hf"), 0).stdout
        self.assertRegex(model, "(?m)^heads = 3 +# n_head is 3$")
        self.assertEqual(model, self.expect(self.run_kzero("defaults", "--config", "hf/config.json"), 0).stdout)
        (self.folder / "new.toml").write_text(model + "[data]\nfiles = ['text']\n")
        self.expect(self.run_kzero("check", "new.toml", "--files"), 0)
        self.expect(self.run_kzero("defaults", "--config", "nowhere"), 4, "nowhere")
        self.expect(self.run_kzero("defaults", "--config", "hf", "--reference"), 2, "--reference")

    def names(self, folder):
        return sorted(p.name for p in (self.folder / folder).iterdir())

    def test_options_that_would_do_nothing_are_errors(self):
        self.expect(self.convert("saved", "one.safetensors", "--shard-size", "1MB"), 2, "one.safetensors is one file")
        self.expect(self.into("again", "hf", "--dtype", "float16"), 2, "--dtype")
        self.expect(self.into("again", "hf", "--shard-size", "1MB"), 2, "--shard-size")
        self.expect(self.convert("saved", "again", "--shard-size", "0"), 2, "must be a size such as 5GB or 4GiB, found 0")
        self.expect(self.convert("saved", "again", "--dtype", "int8"), 2, "int8")
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
        for arguments in (
            ("check", "deck\x1b[2J.toml"),
            ("check", "deck.toml", "model.hidden\x1b[2J=1"),
            ("check", "none\x1b[2J.toml"),
            ("inspect", "none\x1b[2J"),
            ("inspect", "saved", "--verify\x1b[2J"),
        ):
            result = self.run_kzero(*arguments)
            self.assertNotEqual(result.returncode, 0, arguments)
            self.assertNotIn("\x1b", result.stdout + result.stderr, arguments)
            self.assertIn("[2J", result.stdout + result.stderr, arguments)


class Families(LaunchTest):
    """The folders that transformers wrote, of one model of each class of the Llama family."""

    def test_each_is_trained_from_and_handed_on(self):
        reference = Path(__file__).parents[2] / "data/reference"
        for name, kind in (
            ("llama_even", "LlamaForCausalLM"),
            ("llama_scaled", "LlamaForCausalLM"),
            ("qwen2", "Qwen2ForCausalLM"),
            ("qwen3", "Qwen3ForCausalLM"),
        ):
            shutil.copytree(reference / name, self.folder / name)
            (self.folder / name / "tokenizer.json").write_text("{}")
            data = struct.pack("<256i", 20240520, 1, 500, *[0] * 253) + struct.pack("<500H", *[7 * i % 101 for i in range(500)])
            (self.folder / "tokens").write_bytes(data)
            (self.folder / f"{name}.toml").write_text(
                f"[model]\nconfig = '{name}'\ninitial = '{name}'\nsequence = 16\n[train]\nsteps = 2\nglobal_batch = 2\nmicro_batch = 1\n"
                f"[data]\nformat = 'llmc'\nfiles = ['tokens']\n[checkpoint]\nfolder = 'saved_{name}'\n[run]\npeak_tflops = 1.0\n"
            )
            longest = json.loads((reference / name / "config.json").read_text())["max_position_embeddings"]
            self.expect(self.run_kzero("check", f"{name}.toml", "--files"), 0)
            self.expect(self.run_kzero("convert", name, "first", "--deck", f"{name}.toml"), 0)
            self.expect(self.run_kzero("convert", "first", f"back_{name}"), 0)
            original = tensors_of(self.folder / name / "model.safetensors")
            self.assertEqual(tensors_of(self.folder / f"back_{name}/model.safetensors"), original)
            shutil.rmtree(self.folder / "first")
            self.expect(self.run_kzero("train", f"{name}.toml", ranks=2), 0)
            self.expect(self.run_kzero("convert", f"saved_{name}", f"new_{name}", "--shard-size", "50kB"), 0)
            new = self.folder / f"new_{name}"
            trained = {n: t for file in new.glob("model-*.safetensors") for n, t in tensors_of(file).items()}
            self.assertEqual({n: t[:2] for n, t in trained.items()}, {n: t[:2] for n, t in original.items()})
            self.assertNotEqual(trained, original)
            config = json.loads((new / "config.json").read_text())
            self.assertEqual((config["architectures"], config["max_position_embeddings"]), ([kind], longest))
            self.assertEqual((new / "tokenizer.json").read_text(), "{}")
            self.expect(
                self.run_kzero("train", f"{name}.toml", f"model.config={new}", f"model.initial={new}", "checkpoint.folder="), 0
            )


if __name__ == "__main__":
    unittest.main()
