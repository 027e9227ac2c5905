"""Random models as Hugging Face folders, and what kzero computes with a model in any form."""

import json
import shutil
import struct
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


class FormsTest(LaunchTest):
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
