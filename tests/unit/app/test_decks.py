"""The decks of input/: they are sound, and those of input/gpu need the memory that they say and fit the GPUs that they are for."""

import json
import os
import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DECKS = sorted(path.relative_to(ROOT) for path in (ROOT / "input").rglob("*.toml"))
GPU_DECKS = [path for path in DECKS if path.parent.name == "gpu"]
# Decks to plan, without data; rates of a machine; decks for models that are not in the repository
NOT_TO_RUN = [
    Path(f"input/{name}") for name in ("paper", "rates", "tune.toml", "continue.toml", "way/tune.toml", "way/prefer.toml")
]
# Bytes for a plan on GPUs of 80 GiB and of 141 GB: the rest, 4 GiB, is for CUDA's context and NCCL's buffers
ROOM, LARGE_ROOM = 76 * 2**30, 127 * 2**30
HAS_CUDNN = os.environ.get("KZERO_USES_CUDNN") == "1"


def run_kzero(*arguments):
    return subprocess.run([os.environ["KZERO"], *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


class Decks(unittest.TestCase):
    def test_every_deck_is_sound(self):
        for deck in (path for path in DECKS if not {path, path.parent} & set(NOT_TO_RUN)):
            with self.subTest(deck):
                result = run_kzero("check", deck)
                self.assertEqual((result.returncode, result.stdout), (0, f"{deck}: no errors\n"), result.stderr)

    def check_plan(self, deck, ranks, overrides, said, room):
        # The plan of another build lacks cuDNN's scratch, and has smaller chunks of logits.
        settings, margin = ([], 0.1) if HAS_CUDNN else (["run.attention=kzero", "run.communicator=nccl"], 2.0)
        rates = ("--threads", "1", "--tflops", "400", "--bandwidth", "300GB", "--memory-bandwidth", "3TB")
        result = run_kzero("plan", deck, *settings, *overrides, "--ranks", ranks, "--json", *rates)
        self.assertEqual(result.returncode, 0, result.stderr)
        (entry,) = json.loads(result.stdout)
        planned = entry["total_bytes"] - entry["memory"].get("offloaded", 0)
        self.assertAlmostEqual(planned / 2**30, float(said), delta=margin)
        self.assertLessEqual(planned, room)

    def test_decks_for_gpus_need_what_they_say_and_fit(self):
        self.assertEqual(len(GPU_DECKS), 5)
        larger = 0
        for deck in GPU_DECKS:
            text = (ROOT / deck).read_text()
            ranks = re.search(r"^# Ranks +(\d+)", text, re.M).group(1)
            with self.subTest(deck):
                self.check_plan(deck, ranks, (), re.search(r"^# Memory +([\d.]+) GiB a rank", text, re.M).group(1), ROOM)
            for overrides, said in re.findall(r"^# 141 GB +(.*), ([\d.]+) GiB", text, re.M):
                larger += 1
                with self.subTest(deck, overrides=overrides):
                    self.check_plan(deck, ranks, overrides.split(), said, LARGE_ROOM)
        self.assertEqual(larger, 3)


if __name__ == "__main__":
    unittest.main()
