"""From text to a scored model, as README.md's section says it, on input/own_text.toml made smaller.

Usage:

    KZERO=build/release/kzero KZERO_LAUNCHER="mpiexec -n" TOKENIZERS_PYTHON=.deps/venv/bin/python3 python3 test_own_text.py
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from journey import KZERO, ROOT, WITH_TOKENIZERS, Journey, main

SMALLER = [
    "model.vocab=600",
    "model.hidden=48",
    "model.layers=2",
    "model.sequence=32",
    "train.steps=24",
    "train.validate_every=12",
    "checkpoint.every=0",
    "optimizer.warmup=4",
    "train.global_batch=8",
    "train.micro_batch=4",
    "train.validation_batches=1",
]


class OwnText(Journey):
    def test_every_step_of_the_way(self):
        with tempfile.TemporaryDirectory() as name:
            self.folder = Path(name)
            self.run_in(
                WITH_TOKENIZERS,
                "-B",
                ROOT / "input/prepare.py",
                ROOT / "docs",
                "-o",
                "data",
                "--vocab",
                600,
                "--validation",
                0.1,
            )
            deck = ROOT / "input/own_text.toml"
            self.launch("train", deck, *SMALLER, "run.max_steps=12", code=75)
            self.assertIn("resumes bit for bit", self.launch("train", deck, *SMALLER))

            scores = json.loads(self.launch("evaluate", "runs/own_text/checkpoints", "data/text_val_000000.bin", "--json"))
            score = scores["results"][0]
            self.assertLess(score["loss"], 6.3)  # 6.4 is the logarithm of 600: nothing learned
            self.assertGreater(score["bits_per_byte"], 0)
            self.assertLess(score["bits_per_byte"], 8)

            text = self.run_in(
                KZERO, "generate", "runs/own_text/checkpoints", "--prompt", "The", "--max-tokens", 8, "--seed", 3
            )
            self.run_in(KZERO, "convert", "runs/own_text/checkpoints", "exported")
            exported = {path.name for path in (self.folder / "exported").iterdir()}
            self.assertLessEqual({"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"}, exported)
            again = self.run_in(KZERO, "generate", "exported", "--prompt", "The", "--max-tokens", 8, "--seed", 3)
            self.assertEqual(text, again)

            self.run_in(sys.executable, "-B", ROOT / "postprocess/report.py", "runs/own_text", "-o", "report.html")
            self.assertIn("<html", (self.folder / "report.html").read_text()[:200])
            self.continue_on_new_text()

    def continue_on_new_text(self):
        """As docs/tutorial.md's section says it, on input/continue.toml made smaller."""
        prepare = [ROOT / "input/prepare.py", *sorted((ROOT / "src").glob("*")), "-o", "new", "--tokenizer", "exported"]
        self.run_in(WITH_TOKENIZERS, "-B", *prepare, "--validation", 0.1)
        smaller = ["model.sequence=32", "train.steps=24", "optimizer.decay=8", "train.validation_batches=2", "run.log_every=1"]
        shown = self.launch("train", ROOT / "input/continue.toml", *smaller).splitlines()
        for name in ("validation", "evaluation old text"):
            (line,) = (line for line in shown[-4:] if f" {name} " in line)
            last, before = (float(word) for word in re.findall(r"\d\.\d{4}", line.split(f" {name} ")[1])[:2])
            if name == "validation":
                self.assertLess(last, before, "it has learned from the new text")
        self.run_in(KZERO, "convert", "runs/continue/checkpoints", "continued")
        self.run_in(KZERO, "generate", "continued", "--prompt", "The", "--max-tokens", 8, "--seed", 3)


if __name__ == "__main__":
    main("tokenizers")
