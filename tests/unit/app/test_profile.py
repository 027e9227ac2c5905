"""run.profile: a time line of all ranks whose figures agree with the run's own reports."""

import collections
import json
import unittest

from launch import LaunchTest, steps_of

TENSOR = ("grid.tensor=2", "model.heads=4", "model.hidden=16")


class Profile(LaunchTest):
    def trace(self):
        trace = json.loads((self.folder / "trace.json").read_text())
        self.names = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
        self.facts = trace["otherData"]
        return [e for e in trace["traceEvents"] if e["ph"] == "X"]

    def profiled(self, *overrides, steps="2-4", ranks=2):
        result = self.train("run.profile=trace.json", f"run.profile_steps={steps}", *overrides, ranks=ranks)
        return self.expect(result, 0)

    def check_nesting(self, spans):
        """Spans of a thread lie within one another or apart; times have three digits after the microsecond."""
        lanes = collections.defaultdict(list)
        for e in spans:
            lanes[e["pid"], e["tid"]].append((e["ts"], -e["dur"]))
        for lane in lanes.values():
            around = []
            for begin, length in sorted(lane):
                end = begin - length
                while around and around[-1] <= begin + 0.0015:
                    around.pop()
                if around:
                    self.assertLessEqual(end, around[-1] + 0.0015)
                around.append(end)

    def check_messages(self, spans, steps):
        """The bytes of rank 0's messages are those that its traffic report counts."""
        sent = collections.Counter()
        for e in spans:
            if e["cat"] == "message" and e["pid"] == 0:
                sent[e["name"], "bytes"] += e["args"].get("bytes", 0)
                sent[e["name"], "elements"] += e["args"].get("elements", 0)
        (end,) = self.metrics("end")
        for row in end["traffic"]:
            name = f"{row['group']}: {row['operation']} of {row['purpose']}"
            self.assertEqual(sent.pop((name, "bytes")), steps * row["bytes_per_step"], name)
            self.assertEqual(sent.pop((name, "elements")), steps * row["elements_per_step"], name)
        self.assertEqual(sent, {})

    def test_shows_what_every_rank_did(self):
        self.profiled(
            "zero.stage=3",
            "zero.overlap=on",
            "train.validate_every=3",
            "data.validation_fraction=0.2",
            "train.validation_batches=1",
            "checkpoint.every=3",
        )
        spans = self.trace()
        self.assertEqual(self.facts["steps"], "steps 2 to 4")
        self.assertEqual((self.facts["ranks"], self.facts["lost_spans"]), (2, [0, 0]))
        for rank in (0, 1):
            mine = [e for e in spans if e["pid"] == rank]
            self.assertEqual({self.names[rank, e["tid"]] for e in mine}, {"compute", "messages of group data"})
            named = collections.Counter(e["name"] for e in mine)
            self.assertEqual(named["kzero::engine::step"], 3)
            self.assertEqual(named["kzero::engine::evaluate"], 1)
            self.assertEqual(named["kzero::run::save_checkpoint"], 1)
            self.assertEqual(named["kzero::engine::forward_unit block 0"], named["kzero::engine::backward_unit block 0"])
            for part in ("forward_unit", "compute_loss", "backward_unit", "update_unit", "load_batch"):
                self.assertTrue(any(name.startswith(f"kzero::engine::{part}") for name in named), part)
            kinds = {e["cat"] for e in mine}
            self.assertLessEqual({"phase", "kernel", "product", "message", "wait", "file"}, kinds)
            for e in mine:
                self.assertGreaterEqual(e["ts"], 0)
                self.assertGreaterEqual(e["dur"], 0)
        product = next(e for e in spans if e["cat"] == "product")
        m, n, k = map(int, product["name"].split()[2:5])
        self.assertAlmostEqual(product["args"]["gflop"], 2e-9 * m * n * k, places=12)
        self.check_nesting(spans)
        # Validation also gathers, but is excluded from the traffic of steps.
        inside = [(e["ts"], e["ts"] + e["dur"]) for e in spans if e["pid"] == 0 and e["name"] == "kzero::engine::evaluate"]
        self.check_messages([e for e in spans if not any(a <= e["ts"] <= b for a, b in inside)], 3)

    def test_changes_no_bit_of_the_run(self):
        self.expect(self.train("zero.stage=2", "run.metrics=without.jsonl", "checkpoint.folder=", ranks=2), 0)
        self.profiled("zero.stage=2", "checkpoint.folder=")
        self.assertEqual(steps_of(self.folder / "without.jsonl"), steps_of(self.folder / "metrics.jsonl"))

    def test_shows_both_groups_of_a_grid(self):
        self.profiled(*TENSOR, "checkpoint.folder=", "zero.stage=2", ranks=4, steps="0-1")
        spans = self.trace()
        self.assertEqual({e["name"].split(":")[0] for e in spans if e["cat"] == "message"}, {"data", "tensor"})
        self.check_messages(spans, 2)
        self.check_nesting(spans)

    def test_says_what_did_not_fit(self):
        result = self.profiled(
            "checkpoint.folder=", "run.profile_buffer=64KiB", "model.layers=12", "train.global_batch=16", ranks=1
        )
        spans = self.trace()
        self.assertEqual(len(spans), 65536 // 128)
        self.assertIn(f"lacks {self.facts['lost_spans'][0]} spans", result.stdout)
        self.check_nesting(spans)

    def test_writes_what_a_run_did_that_stops_early(self):
        self.expect(self.train("run.profile=trace.json", "run.profile_steps=1-4", "run.max_steps=3", ranks=2), 75)
        self.assertEqual(sum(e["name"] == "kzero::engine::step" for e in self.trace()), 4)
        self.assertEqual(self.facts["steps"], "steps 1 to 2")
        before = (self.folder / "trace.json").read_bytes()
        later = self.expect(self.train("run.profile=trace.json", "run.profile_steps=0-2", ranks=2), 0)
        self.assertIn("were done before this job", later.stdout)
        self.assertEqual((self.folder / "trace.json").read_bytes(), before)
        self.assertEqual(list(self.folder.glob("*.partial")), [])

    def test_refuses_files_that_it_must_not_or_cannot_write(self):
        self.expect(self.train("run.profile=text", "run.profile_steps=2-4", ranks=2), 4, "exists and is not a time line")
        self.expect(self.train("run.profile=text/trace.json", "run.profile_steps=2-4", ranks=2), 4, "run.profile: ")
        self.expect(self.train("run.profile=.", "run.profile_steps=2-4"), 4, "is not a time line")
        self.expect(self.train("run.profile=trace.json", "run.profile_steps=4-6"), 2, "must end before train.steps = 6")


if __name__ == "__main__":
    unittest.main()
