#!/usr/bin/env python3
"""The plot scripts draw a small metrics file; the reader takes the last record of a step."""
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parent.parent / "postprocess"
sys.path[:0] = [str(HERE), str(SCRIPTS)]

import records
import synthetic


class Plots(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.run_file = self.folder / "small.jsonl"
        synthetic.write(self.run_file)

    def draw(self, script, *files):
        picture = self.folder / "picture.png"
        command = [sys.executable, SCRIPTS / script, *files, "-o", picture]
        return subprocess.run(command, capture_output=True, text=True, check=False), picture

    def check_picture(self, script, *files):
        """A blank picture of this size compresses to a few kilobytes; one with curves does not."""
        result, picture = self.draw(script, *files)
        self.assertEqual(result.returncode, 0, result.stderr)
        data = picture.read_bytes()
        self.assertEqual(data[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", data[16:24])
        self.assertGreaterEqual(width, 1000)
        self.assertGreaterEqual(height, 500)
        self.assertGreater(len(data), 15000)

    def test_loss_is_drawn(self):
        self.check_picture("plot_loss.py", self.run_file)

    def test_throughput_is_drawn(self):
        self.check_picture("plot_throughput.py", self.run_file)

    def test_memory_is_drawn(self):
        self.check_picture("plot_memory.py", self.run_file)

    def test_two_runs_share_a_picture(self):
        other = self.folder / "other.jsonl"
        synthetic.write(other, scale=2)
        for script in ("plot_loss.py", "plot_throughput.py", "plot_memory.py"):
            self.check_picture(script, self.run_file, other)

    def test_a_run_that_is_still_going_has_a_loss_but_no_memory(self):
        lines = self.run_file.read_text().splitlines()
        self.run_file.write_text("\n".join(lines[:40]))
        self.check_picture("plot_loss.py", self.run_file)
        result, _ = self.draw("plot_memory.py", self.run_file)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("has not ended in order", result.stderr)

    def test_a_missing_or_foreign_file_is_named(self):
        foreign = self.folder / "foreign.jsonl"
        foreign.write_text("words\n[1]\n")
        absent = self.folder / "absent"
        for path, text in ((foreign, "holds no record"), (absent, "cannot be read")):
            result, _ = self.draw("plot_loss.py", path)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(f"{path}: {text}", result.stderr)
            self.assertNotIn("Traceback", result.stderr)


class Reader(unittest.TestCase):
    def test_the_last_record_of_a_repeated_step_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            synthetic.write(Path(folder) / "run.jsonl")
            run = records.read(Path(folder) / "run.jsonl")
        self.assertEqual([r["step"] for r in run.steps], list(range(300)))
        self.assertLess(max(r["loss"] for r in run.steps), 99.0)
        self.assertEqual([v["step"] for v in run.validations], [50, 100, 150, 200, 250, 300])
        self.assertEqual(run.restarts(), [150])
        self.assertEqual(run.end["reason"], "completed")

    def test_smoothing_leaves_out_what_is_not_a_number(self):
        self.assertEqual(records.smoothed([1.0, float("nan"), 3.0]), [1.0, 2.0, 3.0])


if __name__ == "__main__":
    unittest.main()
