"""Shared by the tests of a user's entire way from a text to a model, with the commands of the documents."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

KZERO = str(Path(os.environ["KZERO"]).resolve())
LAUNCHER = os.environ["KZERO_LAUNCHER"].split()
ROOT = Path(__file__).resolve().parents[2]
WITH_TOKENIZERS = os.environ["TOKENIZERS_PYTHON"]


class Journey(unittest.TestCase):
    folder = None  # where the commands run

    def run_in(self, *command, code=0):
        environment = {**os.environ, "PREPARE": str(ROOT / "input/prepare.py")}
        done = subprocess.run(
            list(map(str, command)), cwd=self.folder, env=environment, capture_output=True, text=True, timeout=240
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def launch(self, *arguments, code=0):
        return self.run_in(*LAUNCHER, 2, KZERO, *arguments, code=code)


def main(*libraries):
    """Runs the tests, or skips them (exit code 77) unless prepare.py's Python has the libraries."""
    if subprocess.run([WITH_TOKENIZERS, "-c", f"import {', '.join(libraries)}"], capture_output=True).returncode != 0:
        print(f"not installed: {', '.join(libraries)}")
        sys.exit(77)
    unittest.main()
