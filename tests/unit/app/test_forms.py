"""A model in its three forms: a Hugging Face folder, checkpoints, an export. The same loss, the same continuation, and every file and
key that it came with."""

import json
import shutil
import unittest

from forms import CONTEXT, PROMPT, TOKENIZER, FormsTest, gpt2, llama, qwen3


class Forms(FormsTest):
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
