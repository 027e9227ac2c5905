"""Runs on a machine that is in doubt: micro-batches are computed twice. Arguments: names of test classes."""

import json
import unittest

from launch import LaunchTest


class Verification(LaunchTest):
    def test_a_healthy_machine(self):
        plain = self.expect(self.train("run.metrics=plain.jsonl", "checkpoint.folder="), 0)
        for ranks in (None, 2):
            result = self.expect(self.train("run.verify_every=2", "checkpoint.folder=", ranks=ranks), 0)
            self.assertNotIn("computed wrongly", result.stdout + result.stderr + plain.stdout)
            self.assertEqual([r["loss"] for r in self.metrics("step")],
                             [json.loads(line)["loss"] for line in (self.folder / "plain.jsonl").read_text().splitlines()
                              if '"event":"step"' in line])


if __name__ == "__main__":
    unittest.main()
