"""Runs on a machine that is in doubt: steps that a restart repeats are compared with the metrics file. Arguments: names of test classes."""

import json
import shutil
import unittest

from launch import LaunchTest


class Replay(LaunchTest):
    """A run of six steps whose checkpoints after step 2 are gone, so that the next launch computes steps 2 to 5 again."""

    def setUp(self):
        super().setUp()
        self.expect(self.train("checkpoint.every=2"), 0)
        for step in (4, 6):
            shutil.rmtree(self.folder / f"saved/step_0000000{step}")

    def record_another_loss(self, step):
        path = self.folder / "metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if line["event"] == "step" and line["step"] == step:
                line["loss"] += 1e-9
        path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))

    def again(self, *overrides, ranks=2, replay="check"):
        return self.train("checkpoint.every=2", f"run.replay={replay}", *overrides, ranks=ranks)

    def test_the_same_results(self):
        for replay in ("check", "note"):
            result = self.expect(self.again(replay=replay), 0)
            self.assertIn("steps 2 to 5 are compared with metrics.jsonl\n", result.stdout)
            self.assertIn("the steps up to 5 came out as recorded\n", result.stdout)
            for step in (4, 6):
                shutil.rmtree(self.folder / f"saved/step_0000000{step}")

    def test_another_result_stops_the_run_before_its_step_is_saved(self):
        self.record_another_loss(5)
        result = self.expect(self.again(), 1, "run.replay: step 5 came out differently: loss ", "Start the run again")
        self.assertNotIn("came out as recorded", result.stdout)
        self.assertEqual(self.checkpoints(), ["step_00000002", "step_00000004"])
        end = json.loads((self.folder / "saved/end.json").read_text())
        self.assertEqual(end, {"reason": "replay", "signal": "", "exit_code": 1, "steps": 5})
        self.assertEqual(self.metrics("end")[-1]["reason"], "replay")
        # The second launch's record is independent evidence.
        result = self.expect(self.again(), 0)
        self.assertIn("step 5 agrees with an earlier launch; another one, on ", result.stdout)

    def test_another_result_with_a_note(self):
        self.record_another_loss(3)
        result = self.expect(self.again(replay="note"), 0)
        self.assertEqual(result.stdout.count("warning     run.replay: step 3 came out differently"), 1)

    def test_bits_that_may_differ(self):
        self.record_another_loss(3)
        result = self.expect(self.again("train.precision=bf16"), 0)
        self.assertIn("replay      is not checked, as the run does not resume bit for bit\n", result.stdout)
        result = self.expect(self.train("run.replay=check", "run.metrics="), 2)
        self.assertIn('run.replay = "check" needs run.metrics', result.stderr)

    def test_records_of_other_settings(self):
        self.expect(self.again("optimizer.lr=1e-3", replay="off"), 0)
        for step in (4, 6):
            shutil.rmtree(self.folder / f"saved/step_0000000{step}")
        result = self.expect(self.again(), 0)
        self.assertIn("4 recorded steps from 2 on cannot be compared", result.stdout)
        self.assertIn("the steps up to 5 came out as recorded\n", result.stdout)


class Verification(LaunchTest):
    def test_a_healthy_machine(self):
        plain = self.expect(self.train("run.metrics=plain.jsonl", "checkpoint.folder="), 0)
        for ranks in (None, 2):
            result = self.expect(self.train("run.verify_every=2", "checkpoint.folder=", ranks=ranks), 0)
            self.assertNotIn("computed wrongly", result.stdout + result.stderr + plain.stdout)
            self.assertEqual(
                [r["loss"] for r in self.metrics("step")],
                [
                    json.loads(line)["loss"]
                    for line in (self.folder / "plain.jsonl").read_text().splitlines()
                    if '"event":"step"' in line
                ],
            )


if __name__ == "__main__":
    unittest.main()
