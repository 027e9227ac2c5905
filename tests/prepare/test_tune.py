"""From a model to a tuned model, as docs/tutorial.md says it, on input/tune.toml made smaller: questions become documents, a model
that kzero trained and exported is tuned on them, and the job is stopped once on the way.

Usage:

    KZERO=build/release/kzero KZERO_LAUNCHER="mpiexec -n" TOKENIZERS_PYTHON=.deps/venv/bin/python3 python3 test_tune.py
"""

import json
import shutil
import tempfile
from pathlib import Path

from journey import KZERO, ROOT, WITH_TOKENIZERS, Journey, main

BASE = "SmolLM2"
TEMPLATE = """{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
MAKE_TOKENIZER = "import sys; sys.path.insert(0, sys.argv[1]); import chat_case; chat_case.make_tokenizer(sys.argv[2])"
SHAPE = ["model.family=llama", "model.qk_norm=true", "model.layers=2", "model.hidden=48", "model.heads=4", "model.vocab=384"]
SHORT = ["train.steps=24", "train.precision=fp32", "optimizer.lr=2e-3", "model.sequence=512", "train.validate_every=12"]


class Tune(Journey):
    def make_base(self):
        """A model folder: weights of a run of one step, a tokenizer, and a chat template."""
        tokenizer = self.folder / "tokenizer.json"
        self.run_in(WITH_TOKENIZERS, "-B", "-c", MAKE_TOKENIZER, ROOT / "tests/prepare", tokenizer)
        text = f'data.files=["{ROOT}/README.md"]'
        run = [
            "train.steps=1",
            "optimizer.warmup=1",
            "train.validate_every=0",
            "train.global_batch=2",
            "train.micro_batch=1",
            "checkpoint.folder=base_run",
        ]
        self.launch("train", ROOT / "input/quickstart.toml", *SHAPE, "model.sequence=64", *run, text)
        self.run_in(KZERO, "convert", "base_run", BASE, "--tokenizer", tokenizer)
        (self.folder / BASE / "chat_template.jinja").write_text(TEMPLATE)

    def test_every_step_of_the_way(self):
        with tempfile.TemporaryDirectory() as name:
            self.folder = Path(name)
            self.make_base()
            questions = [ROOT / "input/questions.jsonl", "-o", "questions", "--chat", "--tokenizer", BASE]
            self.run_in(
                WITH_TOKENIZERS,
                "-B",
                ROOT / "input/prepare.py",
                *questions,
                "--each-turn",
                "--sequence",
                512,
                "--validation",
                0.015,  # at most one sequence, which one batch of validation reads completely
            )
            deck = ROOT / "input/tune.toml"
            shown = self.run_in(KZERO, "inspect", deck, "--sample", 0)
            self.assertIn("<|im_start|>assistant", shown)
            self.assertRegex(shown, r"\[[A-Z][^\]]*<\|im_end\|>\]")  # an answer and its end are targets

            text = ["-o", "questions", "--documents", "--tokenizer", BASE, "--sequence", 512, "--name", "plain"]
            self.run_in(WITH_TOKENIZERS, "-B", ROOT / "input/prepare.py", ROOT / "docs", *text)
            both = deck.read_text().replace('files = ["questions/text_train.docs"]\n', "")
            for name in ("text", "plain"):
                both += f'[[data.blend]]\nname = "{name}"\nfiles = ["questions/{name}_train.docs"]\nweight = 0.5\n'
            (self.folder / "both.toml").write_text(both)
            self.assertRegex(self.run_in(KZERO, "check", "--files", "both.toml", *SHORT), r"plain.*\n")

            self.assertRegex(self.launch("train", deck, *SHORT, "run.max_steps=12", code=75), r"packs 19\d documents")
            self.assertIn("resumes bit for bit", self.launch("train", deck, *SHORT))
            records = [json.loads(line) for line in (self.folder / "runs/tune/metrics.jsonl").read_text().splitlines()]
            losses = [record["loss"] for record in records if record["event"] == "step"]
            self.assertEqual(len(losses), 24)
            self.assertLess(losses[-1], losses[0] - 1)
            validation = [record["loss"] for record in records if record["event"] == "validation"]
            score = json.loads(
                self.launch("evaluate", "runs/tune/checkpoints", "questions/text_val.docs", "--as-trained", "--json")
            )
            self.assertAlmostEqual(score["results"][0]["loss"], validation[-1], delta=1e-4)

            self.run_in(KZERO, "convert", "runs/tune/checkpoints", "tuned")
            self.assertTrue((self.folder / "tuned/tokenizer.json").exists())
            ids = {
                token["content"]: token["id"]
                for token in json.loads((self.folder / "tuned/tokenizer.json").read_text())["added_tokens"]
            }
            for file in ("config.json", "generation_config.json"):
                ends = json.loads((self.folder / "tuned" / file).read_text())["eos_token_id"]
                self.assertEqual(
                    (ends[0], len(ends)), (ids["<|im_end|>"], 2), f"{file}: an answer ends, and a text of the base model"
                )
            shutil.rmtree(self.folder / BASE)  # the tuned model does not need the one that it began from
            prompt = "<|im_start|>user\nWhat is kzero?<|im_end|>\n<|im_start|>assistant\n"
            options = ("--max-tokens", 8, "--seed", 3, "--json")
            plain = self.run_in(KZERO, "generate", "tuned", "--prompt", prompt, *options)
            for model in ("tuned", "runs/tune/checkpoints"):
                asked = self.run_in(KZERO, "generate", model, "--chat", "--prompt", "What is kzero?", *options)
                self.assertEqual(asked.splitlines()[0], plain.splitlines()[0])


if __name__ == "__main__":
    main("tokenizers", "jinja2")
