"""A model in its three forms: a Hugging Face folder, checkpoints, an export. The same loss, the same continuation, and every file and
key that it came with."""

import json
import shutil
import struct
import unittest
from pathlib import Path

import numpy as np
from launch import LaunchTest
from test_huggingface import write_tensors

TOKENIZER = Path(__file__).parents[2] / "data/tokenizer/gpt2/tokenizer.json"  # 768 tokens
WIDTH, INNER, VOCAB, CONTEXT, HEAD = 32, 48, 800, 96, 8
PROMPT = "The memory of a rank holds parameters, gradients and the state of the optimizer. " * 2

BESIDES = {
    "bos_token_id": None,
    "eos_token_id": 767,
    "use_cache": False,
    "attention_dropout": 0.125,
    "my_company": {"ticket": [1, 2.5, None], "name": "ä"},
}
FILES = {
    "generation_config.json": json.dumps({"eos_token_id": [767, 3], "temperature": 0.6, "top_p": 0.9, "my_rule": "x"}),
    "tokenizer_config.json": json.dumps({"eos_token": "<|endoftext|>", "my_words": [1]}),
    "special_tokens_map.json": "{}",
    "chat_template.jinja": "{% for m in messages %}{{ m['content'] }}{% endfor %}",
    "additional_chat_templates/tool_use.jinja": "{{ tools }}",
}


def gpt2():
    shapes = {"wte.weight": [VOCAB, WIDTH], "wpe.weight": [CONTEXT, WIDTH]}
    for layer in (f"h.{i}." for i in range(2)):
        for name, inputs, outputs in (
            ("attn.c_attn", WIDTH, 3 * WIDTH),
            ("attn.c_proj", WIDTH, WIDTH),
            ("mlp.c_fc", WIDTH, INNER),
            ("mlp.c_proj", INNER, WIDTH),
        ):
            shapes |= {f"{layer}{name}.weight": [inputs, outputs], f"{layer}{name}.bias": [outputs]}
        shapes |= {f"{layer}{norm}.{part}": [WIDTH] for norm in ("ln_1", "ln_2") for part in ("weight", "bias")}
    shapes |= {"ln_f.weight": [WIDTH], "ln_f.bias": [WIDTH]}
    config = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_layer": 2, "n_embd": WIDTH, "n_head": 4}
    return config | {"n_positions": CONTEXT, "n_inner": INNER, "vocab_size": VOCAB, "resid_pdrop": 0.1}, shapes


def llama(kind="llama", name="LlamaForCausalLM", has_norms=False):
    shapes = {"model.embed_tokens.weight": [VOCAB, WIDTH], "model.norm.weight": [WIDTH]}
    for layer in (f"model.layers.{i}." for i in range(2)):
        shapes |= {f"{layer}{norm}_layernorm.weight": [WIDTH] for norm in ("input", "post_attention")}
        shapes |= {f"{layer}self_attn.{part}_proj.weight": [2 * HEAD, WIDTH] for part in "kv"}
        shapes |= {f"{layer}self_attn.q_proj.weight": [4 * HEAD, WIDTH], f"{layer}self_attn.o_proj.weight": [WIDTH, 4 * HEAD]}
        shapes |= {f"{layer}mlp.{part}_proj.weight": [INNER, WIDTH] for part in ("gate", "up")}
        shapes |= {f"{layer}mlp.down_proj.weight": [WIDTH, INNER]}
        if has_norms:
            shapes |= {f"{layer}self_attn.{part}_norm.weight": [HEAD] for part in "qk"}
    config = {"architectures": [name], "model_type": kind, "hidden_size": WIDTH, "intermediate_size": INNER}
    config |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": HEAD}
    config |= {"max_position_embeddings": CONTEXT, "vocab_size": VOCAB, "rms_norm_eps": 1e-6, "rope_theta": 5000.0}
    if not has_norms:
        shapes["lm_head.weight"] = [VOCAB, WIDTH]
        scaling = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        config["rope_scaling"] = scaling | {"original_max_position_embeddings": 32}
    return config | {"tie_word_embeddings": has_norms}, shapes


def qwen3():
    return llama("qwen3", "Qwen3ForCausalLM", has_norms=True)


class Forms(LaunchTest):
    def setUp(self):
        super().setUp()
        (self.folder / "book.txt").write_text("".join(f"{i} ranks hold {i * i} shards. " for i in range(60)))
        (self.folder / "data").mkdir()
        tokens = [7 * i % 761 for i in range(400)]
        header = struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253)
        (self.folder / "data/t.bin").write_bytes(header + struct.pack(f"<{len(tokens)}H", *tokens))

    def store(self, name, model):
        """A folder of a random model with all that it may bring."""
        folder, (config, shapes) = self.folder / name, model
        (folder / "additional_chat_templates").mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config | BESIDES, indent=1))
        random = np.random.default_rng(5)
        values = {
            n: random.normal(1.0 if "norm" in n or "ln_" in n else 0.0, 0.2, s).astype(np.float32) for n, s in shapes.items()
        }
        write_tensors(folder / "model.safetensors", {n: ("F32", shapes[n], v.tobytes()) for n, v in values.items()})
        shutil.copy(TOKENIZER, folder / "tokenizer.json")
        for file, text in FILES.items():
            (folder / file).write_text(text)

    def deck(self, name, more="", sequence=CONTEXT, data="format = 'bytes'"):
        text = f"[model]\nconfig = '{name}'\ninitial = '{name}'\nsequence = {sequence}\n[data]\n{data}\n{more}"
        (self.folder / f"{name}.toml").write_text(text)
        return f"{name}.toml"

    def loss(self, model, *options):
        shown = self.expect(self.run_kzero("evaluate", model, "book.txt", "--json", *options), 0).stdout
        return {key: value for key, value in json.loads(shown)["results"][0].items() if key != "seconds"}

    def continuation(self, model):
        shown = self.run_kzero("generate", model, "--prompt", PROMPT, "--temperature", "0", "--max-tokens", "20", "--json")
        return json.loads(self.expect(shown, 0).stdout)

    def json_of(self, path):
        return json.loads((self.folder / path).read_text())

    def expect_the_files(self, name, out, **changes):
        """What the model brought is in the export, except for the mark, the type of the weights, and these changes."""
        for file in FILES | {"tokenizer.json": ""}:
            if file != "generation_config.json":
                self.assertEqual((self.folder / out / file).read_bytes(), (self.folder / name / file).read_bytes(), file)
        for file in ("config.json", "generation_config.json"):
            found, wanted = self.json_of(f"{out}/{file}"), self.json_of(f"{name}/{file}")
            self.assertEqual(found.pop("_written_by"), "kzero")
            for key in ("dtype", "torch_dtype"):
                found.pop(key, None)
                wanted.pop(key, None)
            self.assertEqual(found, wanted | (changes if file == "config.json" else {}), file)

    def test_loss_and_continuation_do_not_depend_on_the_form(self):
        for name, model in (("gpt2", gpt2()), ("llama", llama()), ("qwen3", qwen3())):
            with self.subTest(name):
                self.store(name, model)
                loss, text = self.loss(name), self.continuation(name)
                self.assertGreater(len(text["tokens"]), 10)
                is_rotary = name != "gpt2"
                more = "[train]\nprecision = 'bf16'\nmicro_batch = 2\nglobal_batch = 4\n"
                self.deck(name, more, 16 if is_rotary else CONTEXT)
                self.expect(self.run_kzero("convert", name, f"{name}.ck", "--deck", f"{name}.toml"), 0)
                (self.folder / name).rename(self.folder / "moved")
                self.assertEqual(self.loss(f"{name}.ck"), loss)
                self.assertEqual(self.continuation(f"{name}.ck"), text)
                self.expect(self.run_kzero("convert", f"{name}.ck", f"{name}.out"), 0)
                self.assertEqual(self.loss(f"{name}.out"), loss)
                self.assertEqual(self.continuation(f"{name}.out"), text)
                (self.folder / "moved").rename(self.folder / name)
                self.expect_the_files(name, f"{name}.out")
                self.deck(f"{name}.out")
                self.expect(self.run_kzero("convert", f"{name}.out", f"{name}.again", "--deck", f"{name}.out.toml"), 0)
                self.assertEqual(self.continuation(f"{name}.again"), text)

    def test_a_trained_model_keeps_what_it_came_with(self):
        self.store("base", qwen3())
        more = "[train]\nsteps = 3\nglobal_batch = 2\nsequence_chunks = 2\ntile_rows = 4\nprecision = 'bf16'\n"
        more += "[checkpoint]\nfolder = 'ck'\n[optimizer]\nlr = 0.01\n[run]\npeak_tflops = 1.0\n"
        self.deck("base", more, 16, "files = ['data/t.bin']\nformat = 'llmc'")
        self.expect(self.run_kzero("train", "base.toml", ranks=2), 0)
        self.expect(self.run_kzero("convert", "ck", "out"), 0)
        self.expect_the_files("base", "out")
        self.assertNotEqual(self.loss("out"), self.loss("base"))
        archive = self.folder / "archive"
        shutil.copytree(self.folder / "ck", archive / "ck")
        for name in ("base", "data", "ck"):
            shutil.rmtree(self.folder / name)
        self.assertEqual(self.loss("archive/ck"), self.loss("out"))
        self.assertEqual(self.continuation("archive/ck"), self.continuation("out"))
        self.assertIn(
            "origin      additional_chat_templates/tool_use.jinja, ",
            self.expect(self.run_kzero("inspect", "archive/ck"), 0).stdout,
        )
        # One checkpoint alone, with the origin in its own folder.
        shutil.move(archive / "ck/step_00000003", archive / "one")
        shutil.move(archive / "ck/origin", archive / "one/origin")
        self.assertEqual(self.continuation("archive/one"), self.continuation("out"))

    def test_a_longer_training_raises_the_context(self):
        self.store("base", llama())
        more = "[train]\nsteps = 1\nglobal_batch = 1\n[checkpoint]\nfolder = 'ck'\n[run]\npeak_tflops = 1.0\n"
        self.deck("base", more, 2 * CONTEXT, "files = ['data/t.bin']\nformat = 'llmc'")
        self.expect(self.run_kzero("train", "base.toml"), 0)
        self.expect(self.run_kzero("convert", "ck", "out"), 0)
        self.expect_the_files("base", "out", max_position_embeddings=2 * CONTEXT)
        self.assertEqual(self.loss("ck")["sequence"], 2 * CONTEXT)
        self.assertEqual(self.loss("ck"), self.loss("out"))

    def test_damage_is_named_and_a_given_tokenizer_is_used(self):
        self.store("base", qwen3())
        self.deck("base")
        self.expect(self.run_kzero("convert", "base", "ck", "--deck", "base.toml"), 0)
        kept = self.folder / "ck/origin/tokenizer.json"
        data = bytearray(kept.read_bytes())
        data[1000] ^= 1
        kept.write_bytes(data)
        problem = "ck/origin/tokenizer.json: is not the file that files.txt lists"
        for command in (("generate", "ck", "--prompt", "a"), ("evaluate", "ck", "book.txt"), ("convert", "ck", "out")):
            self.expect(self.run_kzero(*command), 4, problem)
        self.expect(self.run_kzero("inspect", "ck", "--verify"), 4, problem)
        self.assertFalse((self.folder / "out").exists())
        shutil.rmtree(self.folder / "ck/origin")
        shown = self.expect(self.run_kzero("generate", "ck", "--prompt", PROMPT[:40], "--json", "--tokenizer", TOKENIZER), 0)
        self.assertEqual(json.loads(shown.stdout)["prompt"], PROMPT[:40])

    def test_the_tokenizer_of_the_data_is_kept_by_a_model_from_the_seed(self):
        shutil.copy(TOKENIZER, self.folder / "data/tokenizer.json")
        (self.folder / "data/tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}))
        more = ("model.vocab=768", "data.files=data/t.bin", "data.format=llmc", "train.steps=2")
        self.expect(self.train(*more), 0)
        shutil.rmtree(self.folder / "data")
        self.expect(self.run_kzero("convert", "saved", "out"), 0)
        self.assertEqual(self.json_of("out/config.json")["eos_token_id"], 0)
        self.assertEqual((self.folder / "out/tokenizer.json").read_bytes(), TOKENIZER.read_bytes())
        shown = self.expect(self.run_kzero("generate", "saved", "--prompt", "a", "--max-tokens", "5", "--json"), 0)
        self.assertEqual(json.loads(shown.stdout)["prompt"], "a")


if __name__ == "__main__":
    unittest.main()
