"""A dense model made into a mixture of experts: from any form into any form, and computing at first what the dense one computes."""

import json
import unittest

from forms import CONTEXT, FormsTest, gpt2, llama, qwen3
from test_huggingface import tensors_of

EXPERTS = ("--experts", "4", "--top-k", "2")


class Experts(FormsTest):
    def upcycle(self, name, to, *options):
        return self.run_kzero("convert", name, to, *EXPERTS, *options)

    def tensors(self, folder):
        return tensors_of(self.folder / folder / "model.safetensors")

    def test_every_form_gives_the_same_mixture(self):
        for name, model, kind in (("llama", llama(), "Mixtral"), ("qwen3", qwen3(), "Qwen3Moe")):
            with self.subTest(name):
                self.store(name, model)
                self.deck(name, "", 16)
                self.expect(self.run_kzero("convert", name, f"{name}.ck", "--deck", f"{name}.toml"), 0)
                shown = self.expect(self.upcycle(name, f"{name}.a"), 0).stdout
                self.assertIn("config.json, generation_config.json, additional_chat_templates/tool_use.jinja", shown)
                self.expect(self.upcycle(f"{name}.ck", f"{name}.b"), 0)
                self.expect(self.upcycle(name, f"{name}.mixed", "--deck", f"{name}.toml"), 0)
                self.expect(self.run_kzero("convert", f"{name}.mixed", f"{name}.c"), 0)
                config = self.json_of(f"{name}.a/config.json")
                self.assertEqual(config["architectures"], [f"{kind}ForCausalLM"])
                self.assertEqual((config["num_experts"], config["num_experts_per_tok"]), (4, 2))
                self.assertEqual((config["router_aux_loss_coef"], config["max_position_embeddings"]), (0.01, CONTEXT))
                self.assertEqual((config["eos_token_id"], config["vocab_size"]), (767, 800))
                for other in "bc":
                    found = self.json_of(f"{name}.{other}/config.json")
                    self.assertEqual(found | {"max_position_embeddings": CONTEXT}, config)
                    self.assertEqual(self.tensors(f"{name}.{other}"), self.tensors(f"{name}.a"))
                    self.assertTrue((self.folder / f"{name}.{other}/tokenizer.json").exists())
                self.expect(self.upcycle(f"{name}.ck", f"{name}.d", "--seed", "2", "--drop", "0.5"), 0)
                one, other = self.tensors(f"{name}.a"), self.tensors(f"{name}.d")
                changed = {part.split(".")[3] for part in one if one[part] != other[part]}
                self.assertEqual(changed, {"block_sparse_moe" if kind == "Mixtral" else "mlp"})

    def test_the_mixture_computes_what_the_dense_model_does(self):
        for name, model in (("llama", llama()), ("qwen3", qwen3())):
            with self.subTest(name):
                self.store(name, model)
                self.expect(self.upcycle(name, f"{name}.moe"), 0)
                dense, mixture = self.loss(name), self.loss(f"{name}.moe")
                # The gates of a token are fp32 numbers whose sum is 1 up to rounding.
                self.assertAlmostEqual(mixture["loss"], dense["loss"], delta=2e-6 * dense["loss"])
                self.assertEqual(self.continuation(f"{name}.moe")["tokens"], self.continuation(name)["tokens"])
                # Some channels that are drawn anew are another function.
                self.expect(self.upcycle(name, f"{name}.drop", "--drop", "0.5"), 0)
                self.assertNotAlmostEqual(self.loss(f"{name}.drop")["loss"], dense["loss"], places=3)

    def test_a_mixture_trains(self):
        self.store("dense", llama())
        self.expect(self.upcycle("dense", "moe", "--drop", "nan"), 2, "--drop must be from 0 to 1, found nan")
        self.expect(self.upcycle("dense", "moe", "--seed", "-1"), 2, "--seed")
        self.expect(self.upcycle("dense", "moe"), 0)
        more = "[train]\nsteps = 2\nglobal_batch = 4\n[checkpoint]\nfolder = 'ck'\n[run]\npeak_tflops = 1.0\n"
        self.deck("moe", more, 16, "files = ['data/t.bin']\nformat = 'llmc'")
        self.expect(self.run_kzero("train", "moe.toml", ranks=2), 0)
        self.expect(self.run_kzero("convert", "ck", "out"), 0)
        before, after = self.tensors("moe"), self.tensors("out")
        self.assertEqual(before.keys(), after.keys())
        self.assertNotEqual(*(t["model.layers.1.block_sparse_moe.gate.weight"] for t in (before, after)))
        self.assertEqual(self.json_of("out/config.json")["router_aux_loss_coef"], 0.01)

    def test_adapters_of_a_mixture_and_of_its_dense_model_are_merged(self):
        """The first are those of attention alone."""
        self.store("dense", llama())
        self.expect(self.upcycle("dense", "moe"), 0)
        for name, targets in (("moe", "['all-linear']"), ("dense", "['up_proj', 'down_proj']")):
            more = f"[lora]\nrank = 2\ntargets = {targets}\n[train]\nsteps = 2\nglobal_batch = 4\n"
            more += f"[checkpoint]\nfolder = '{name}.ck'\n[optimizer]\nlr = 0.1\n[run]\npeak_tflops = 1.0\n"
            self.deck(name, more, 16, "files = ['data/t.bin']\nformat = 'llmc'")
            self.expect(self.run_kzero("train", f"{name}.toml", ranks=2), 0)
        self.expect(self.run_kzero("convert", "moe.ck", "adapter"), 0)
        self.assertEqual(
            self.json_of("adapter/adapter_config.json")["target_modules"], ["q_proj", "k_proj", "v_proj", "o_proj"]
        )
        self.expect(self.run_kzero("convert", "--merge", "moe.ck", "merged"), 0)
        before, after = self.tensors("moe"), self.tensors("merged")
        changed = {name.split(".")[4] for name in before if before[name] != after[name]}
        self.assertEqual(changed, {"q_proj", "k_proj", "v_proj", "o_proj"})
        # Those of a dense feed-forward part are in each expert that is made of it.
        self.expect(self.upcycle("dense.ck", "other"), 2, "dense.ck/step_00000002 FOLDER`, and then with --experts on FOLDER")
        self.expect(self.upcycle("dense.ck", "other", "--merge"), 2, "--merge excludes --experts")
        self.expect(self.run_kzero("convert", "--merge", "dense.ck", "sum"), 0)
        self.expect(self.upcycle("sum", "from_sum"), 0)
        self.assertNotEqual(self.tensors("from_sum"), before)

    def test_mistakes(self):
        self.store("dense", llama())
        self.deck("dense")
        self.expect(self.run_kzero("convert", "dense", "moe", "--top-k", "2"), 2, "--top-k requires --experts")
        self.expect(self.run_kzero("convert", "dense", "moe", "--experts", "0"), 2, "--experts")
        problem = "model.experts_per_token must be from 1 to model.experts = 4, found 5"
        self.expect(self.run_kzero("convert", "dense", "moe", "--experts", "4", "--top-k", "5"), 2, problem, "--top-k sets")
        self.expect(self.upcycle("dense", "moe", "--ema"), 2, "--ema is for checkpoints; dense is a Hugging Face model")
        self.expect(self.upcycle("dense", "moe"), 0)
        self.expect(self.upcycle("moe", "more"), 2, "moe: has 4 experts already")
        self.store("gpt2", gpt2())
        self.expect(self.upcycle("gpt2", "other"), 2, 'gpt2: model.family = "gpt2"; --experts is for "llama"')
        config = self.json_of("dense/config.json") | {"model_type": "granite", "architectures": ["GraniteForCausalLM"]}
        (self.folder / "dense/config.json").write_text(json.dumps(config))
        self.expect(self.upcycle("dense", "other"), 4, "MixtralForCausalLM lacks model.attention_scale = 1.0")
        (self.folder / "dense/config.json").unlink()
        self.expect(self.upcycle("dense", "other"), 4, "dense: there is no config.json, which --experts needs without --deck")
        self.expect(self.upcycle("nowhere", "other"), 4, "nowhere")
        self.assertFalse((self.folder / "other").exists())


if __name__ == "__main__":
    unittest.main()
