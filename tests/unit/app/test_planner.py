"""`kzero plan` with a machine file: published runs, campaigns, numbers of nodes, proposals of settings."""

import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path
from statistics import median

from launch import FOR_DEVICES, LaunchTest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/perf"))
import published  # noqa: E402

# The model predicts it 38 % too fast. docs/planning.md says what is known about it.
UNEXPLAINED = {("a100_40gb", "mpt-70b", 64)}

# Predicted too slow: kzero's activations of tensor groups block, those of the programs overlap. Their scaling is predicted.
PIPELINES = ("megatron_h100_175b", "llama3_h100")

MACHINE = """
[rank]
tflops = 0.001
memory_bandwidth = "1GB"
memory = "1MB"
[node]
ranks = 4
bandwidth = "1GB"
watts = 500
hours_between_failures = 1000
[network]
rank_bandwidth = "100MB"
node_bandwidth = "200MB"
[storage]
bandwidth = "1MB"
"""


class Published(unittest.TestCase):
    """Claims of docs/planning.md about runs that others published."""

    @classmethod
    def setUpClass(cls):
        cls.predicted = published.predict(os.environ["KZERO"])

    def test_predicted_runs_are_within_20_percent_and_their_median_is_within_10(self):
        for family in (family for family in published.FAMILIES if family not in PIPELINES):
            pairs = zip(published.RUNS, self.predicted)
            runs = [(run, value) for run, value in pairs if run.family == family and not run.fitted]
            with self.subTest(family):
                self.assertLessEqual(median(abs(published.error(*one)) for one in runs), 0.1)
            for run, value in runs:
                unexplained = (run.family, run.model, run.gpus) in UNEXPLAINED
                with self.subTest(run):
                    self.assertLessEqual(abs(published.error(run, value)), 0.4 if unexplained else 0.2)

    def test_runs_in_pipelines_are_within_25_percent_and_their_scaling_is_within_3(self):
        for family in PIPELINES:
            runs = [(run, value) for run, value in zip(published.RUNS, self.predicted) if run.family == family]
            (small, of_small), (large, of_large) = runs
            self.assertLess(small.gpus, large.gpus)
            with self.subTest(family):
                self.assertLessEqual(max(abs(published.error(*one)) for one in runs), 0.25)
                self.assertAlmostEqual(of_large / of_small, large.printed / small.printed, delta=0.03)

    def test_few_runs_are_fitted_and_these_come_out_as_printed(self):
        fitted = [(run, value) for run, value in zip(published.RUNS, self.predicted) if run.fitted]
        self.assertEqual((len(fitted), len(published.RUNS)), (10, 79))
        for run, value in fitted:
            with self.subTest(run):
                self.assertEqual(run.gpus, 8)
                self.assertLessEqual(abs(published.error(run, value)), 0.01)

    def test_the_recorded_tables_have_these_numbers(self):
        self.assertIn(published.tables(self.predicted), (ROOT / "tests/perf/published_tables.md").read_text())


class Planner(LaunchTest):
    def setUp(self):
        super().setUp()
        (self.folder / "machine.toml").write_text(MACHINE)

    def plan(self, *arguments):
        return json.loads(self.text(*arguments, "--json"))

    def text(self, *arguments):
        return self.expect(self.run_kzero("plan", "deck.toml", "--rates", "machine.toml", *arguments), 0).stdout

    def refused(self, message, *arguments):
        self.assertEqual(self.expect(self.run_kzero("plan", "deck.toml", *arguments), 2, message).stdout, "")

    def test_a_campaign_adds_up(self):
        (planned,) = self.plan("--ranks", "4", "--tokens", "2e6")
        campaign = planned["campaign"]
        tokens = planned["tokens_per_second"] * planned["step_seconds_estimate"]
        self.assertAlmostEqual(campaign["steps"], -(-2e6 // tokens), delta=1)
        self.assertAlmostEqual(
            campaign["seconds"] * (1 - campaign["lost_share"]), campaign["steps"] * planned["step_seconds_estimate"], places=3
        )
        self.assertAlmostEqual(campaign["node_hours"], campaign["seconds"] / 3600)
        self.assertAlmostEqual(campaign["joules"], 500 * campaign["seconds"], places=3)
        self.assertAlmostEqual(campaign["checkpoint_seconds"], 12 * planned["parameters"] / 1e6)
        text = self.text("--ranks", "4", "--tokens", "2e6")
        for word in ("campaign    2.0 M tokens in ", "energy      ", "failures    ", "checkpoint.every="):
            self.assertIn(word, text)

    def test_without_a_machine_file_a_campaign_has_its_time_alone(self):
        rates = ("--tflops", "1", "--bandwidth", "1GB", "--memory-bandwidth", "10GB")
        done = self.run_kzero("plan", "deck.toml", "--tokens", "2e6", "--json", *rates)
        self.assertEqual(
            set(json.loads(self.expect(done, 0).stdout)[0]["campaign"]), {"tokens", "steps", "seconds", "nodes", "node_hours"}
        )

    def test_nodes_are_full_ones_of_the_machine(self):
        planned = self.plan("train.global_batch=16", "--nodes", "1,2,4", "--tokens", "2e6")
        self.assertEqual([(p["ranks"], p["campaign"]["nodes"]) for p in planned], [(4, 1), (8, 2), (16, 4)])
        first, *_ = self.text("train.global_batch=16", "--nodes", "1,2,4").splitlines()[-3:]
        self.assertEqual(first.split()[-1], "1.00")
        self.refused("--rates needs one of --ranks and --nodes", "--rates", "machine.toml", "--ranks", "4", "--nodes", "1")
        self.refused("several numbers of --nodes need --rates", "--nodes", "1,2")

    def test_numbers_that_the_deck_does_not_allow_have_their_reason(self):
        counts = ("train.global_batch=16", "--nodes", "1,8,2")
        done, refused, again = self.plan(*counts)
        self.assertEqual(set(refused), {"ranks", "refused"})
        self.assertIn("too few for 32 data-parallel ranks", refused["refused"])
        self.assertEqual((done["ranks"], refused["ranks"], again["ranks"]), (4, 32, 8))
        _, row, last = self.text(*counts).splitlines()[-3:]
        self.assertIn("     32  not planned: ", row)
        self.assertEqual(last.split()[0], "8")
        self.refused("too few for 32 data-parallel ranks", "--rates", "machine.toml", "--nodes", "8")

    def test_nodes_keep_sums_by_default_where_memory_has_room(self):
        by_default, by_ranks, by_nodes = (
            self.plan("train.global_batch=32", "--nodes", "2", *settings)[0]
            for settings in ((), ("zero.gradients=rank",), ("zero.gradients=node",))
        )
        self.assertEqual([p["gradients"] for p in (by_default, by_ranks, by_nodes)], ["node", "rank", "node"])
        self.assertEqual(by_default["traffic"], by_nodes["traffic"])
        states = sum(by_ranks["memory"][name] for name in ("parameters", "gradients", "optimizer"))
        self.assertLess(by_nodes["memory"]["gradients"] - by_ranks["memory"]["gradients"], states / 2)

    def test_a_plan_above_the_machines_memory_says_so(self):
        self.assertNotIn("too large", self.text("--nodes", "1"))
        (self.folder / "machine.toml").write_text(MACHINE.replace('"1MB"', '"1kB"'))
        command = ("plan", "deck.toml", "--rates", "machine.toml", "train.global_batch=16")
        done = self.expect(self.run_kzero(*command, "--nodes", "1"), 3, "and has 1000 B (rank.memory in machine.toml)")
        self.assertIn("too large   a rank needs ", done.stdout)
        (planned,) = json.loads(self.expect(self.run_kzero(*command, "--nodes", "1", "--json"), 3).stdout)
        self.assertIn("rank.memory in machine.toml", planned["too_large"])
        needed = {p["ranks"]: p["total_bytes"] for p in self.without_memory(*command, "--nodes", "1,2")}
        least, most = sorted(needed, key=needed.get)
        (self.folder / "machine.toml").write_text(MACHINE.replace('"1MB"', f'"{needed[least]}B"'))
        done = self.expect(self.run_kzero(*command, "--nodes", "1,2"), 0)
        self.assertIn(f"too large   of {most} ranks, each needs ", done.stdout)
        self.assertNotIn(f"too large   of {least} ranks", done.stdout)

    def without_memory(self, *command):
        (self.folder / "machine.toml").write_text(MACHINE.replace('memory = "1MB"\n', ""))
        return json.loads(self.expect(self.run_kzero(*command, "--json"), 0).stdout)

    def test_a_pipe_that_nobody_writes_is_refused_at_once(self):
        os.mkfifo(self.folder / "fifo.toml")
        begin = time.monotonic()
        self.refused("fifo.toml: the rates file cannot be read: it is a pipe that nobody writes to", "--rates", "fifo.toml")
        self.assertLess(time.monotonic() - begin, 20)

    def test_each_precision_has_its_rate(self):
        rates = MACHINE.replace("tflops = 0.001", "tflops_fp32 = 0.001\ntflops_bf16 = 0.004")
        (self.folder / "machine.toml").write_text(rates)
        fp32, bf16 = (self.plan(f"train.precision={precision}", "--nodes", "1")[0] for precision in ("fp32", "bf16"))
        self.assertGreater(bf16["model_tflops_per_rank"], 1.5 * fp32["model_tflops_per_rank"])
        self.refused('has no rate for train.precision = "fp16"', "--rates", "machine.toml", "train.precision=fp16")

    def test_the_files_communicator_is_planned_unless_the_deck_has_one(self):
        nccl = MACHINE.replace("[network]", '[network]\ncommunicator = "nccl"')
        (self.folder / "machine.toml").write_text(nccl)
        shown = {
            "NCCL (network.communicator in machine.toml)": (),
            "MPI (run.communicator)": ("run.communicator=mpi",),
            "NCCL (run.communicator)": ("run.communicator=nccl",),
        }
        seconds = {}
        for text, settings in shown.items():
            self.assertIn(f"collectives {text}\n", self.text("--nodes", "1", *settings))
            seconds[text] = self.plan("--nodes", "1", *settings)[0]["step_seconds_estimate"]
        by_file, by_mpi, by_nccl = seconds.values()
        self.assertEqual(by_file, by_nccl)
        self.assertNotEqual(by_file, by_mpi)

    def test_tensor_overlap_hides_messages_in_plans(self):
        tensor = ("grid.tensor=2", "model.heads=4", "--nodes", "1")
        (plain,), (hidden,) = self.plan(*tensor), self.plan(*tensor, "--tensor-overlap")
        wait = "activations of tensor groups"
        self.assertGreater(plain["waits"][wait], hidden["waits"][wait])
        self.assertLess(hidden["step_seconds_estimate"], plain["step_seconds_estimate"])
        self.assertIn("which runs do not have", self.text(*tensor, "--tensor-overlap"))

    def test_widths_outside_the_file_are_a_guess(self):
        (self.folder / "machine.toml").write_text(MACHINE + "[attained]\n100 = 0.5\n")
        (planned,) = self.plan("--nodes", "1")
        note = "model.hidden = 12 is outside the widths of [attained] in machine.toml, 100 to 100"
        self.assertIn(note, planned["notes"][0])
        self.assertIn(f"note        {note}", self.text("--nodes", "1"))

    @unittest.skipIf(FOR_DEVICES, "rates are not measured")
    def test_a_busy_node_is_named_and_its_estimate_is_of_the_right_size(self):
        settings = ("plan", "deck.toml", "model.hidden=192", "model.sequence=128", "--threads", "2", "--json")
        cores = len(os.sched_getaffinity(0))
        spin = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4 * cores)]
        try:
            (busy,) = json.loads(self.expect(self.run_kzero(*settings), 0).stdout)
        finally:
            for process in spin:
                process.kill()
                process.wait()
        self.assertIn("this node is busy", busy["notes"][0])
        (other,) = json.loads(self.expect(self.run_kzero(*settings), 0).stdout)
        self.assertLess(busy["step_seconds_estimate"], 5 * other["step_seconds_estimate"])

    def test_a_time_line_has_every_second_of_the_step(self):
        (planned,) = self.plan("zero.stage=3", "--ranks", "4", "--time-line", "line.json")
        events = json.loads((self.folder / "line.json").read_text())["traceEvents"]
        spans = [e for e in events if e["ph"] == "X" and e["tid"] == 0]
        self.assertAlmostEqual(sum(e["dur"] for e in spans) / 1e6, planned["step_seconds_estimate"], places=6)
        waited = sum(e["dur"] for e in spans if e["cat"] == "wait") / 1e6
        self.assertAlmostEqual(waited, sum(planned["waits"].values()), places=6)
        self.refused(
            "--time-line is of one launch, found 2", "--ranks", "1,2", "--time-line", "x.json", "--rates", "machine.toml"
        )
        taken = self.run_kzero("plan", "deck.toml", "--rates", "machine.toml", "--time-line", "deck.toml")
        self.expect(taken, 4, "deck.toml exists and is not a time line")

    def test_proposals_are_sorted_and_what_they_say(self):
        proposals = self.plan("model.heads=4", "--nodes", "1", "--search")
        times = [p["step_seconds_estimate"] for p in proposals]
        self.assertEqual(times, sorted(times))
        self.assertEqual({p["grid"]["tensor"] for p in proposals}, {1, 2, 4})
        for proposal in (proposals[0], proposals[-1]):
            self.assertLessEqual(proposal["total_bytes"], 1e6)
            settings = [f"{key}={json.dumps(value)}" for key, value in proposal["settings"].items()]
            (again,) = self.plan("model.heads=4", *settings, "--ranks", "4")
            for key in ("memory", "step_seconds_estimate", "micro_batch"):
                self.assertEqual(again[key], proposal[key], key)
        fastest = self.text("model.heads=4", "--nodes", "1", "--search").splitlines()
        self.assertIn(
            f"zero.stage={proposals[0]['stage']}", fastest[fastest.index(next(x for x in fastest if "ranks" in x)) + 1]
        )

    def test_offload_is_proposed_where_it_makes_room(self):
        host = '[host]\nbandwidth = "1GB"\nmemory_bandwidth = "1GB"\nmemory = "1GB"\n'
        device = ("run.communicator=nccl", "model.hidden=120", "--nodes", "1", "--tensor", "1", "--search")
        self.assertNotIn("offload", self.text(*device, "--fit", "4MB"))
        (self.folder / "machine.toml").write_text(MACHINE.replace('"1MB"', '"4MB"') + host)
        proposals = self.plan(*device, "--fit", "4MB")
        offloading = [p for p in proposals if p["settings"].get("zero.offload") == "host"]
        self.assertTrue(offloading)
        for proposal in offloading:
            settings = [f"{key}={json.dumps(value)}" for key, value in proposal["settings"].items()]
            (again,) = self.plan(*device[:2], *settings, "--ranks", "4")
            self.assertEqual(again["step_seconds_estimate"], proposal["step_seconds_estimate"])
            self.assertGreater(again["waits"]["copies between device and host"], 0)
            self.assertLessEqual(again["total_bytes"] - again["memory"]["offloaded"], 4e6)

    def test_a_deck_that_comes_through_a_pipe_is_read_once(self):
        search = ("--rates", "machine.toml", "model.heads=4", "--nodes", "1", "--search", "--json")
        command = self.command(["plan", "/dev/stdin", *search], None)
        deck = (self.folder / "deck.toml").read_text()
        piped = subprocess.run(command, cwd=self.folder, input=deck, capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(piped.stdout), self.plan(*search[2:-1]))

    def test_ranks_that_share_cores_share_the_measured_rates(self):
        given = ("--tflops", "1000000", "--bandwidth", "1000TB")  # the update takes all of the time
        done = self.run_kzero(
            "plan",
            "deck.toml",
            "zero.stage=0",
            "model.hidden=510",
            "train.global_batch=16",
            "--ranks",
            "1,16",
            "--threads",
            "1",
            *given,
            "--json",
        )
        alone, sharing = json.loads(self.expect(done, 0).stdout)
        share = min(1, len(os.sched_getaffinity(0)) / 16)
        self.assertAlmostEqual(alone["step_seconds_estimate"] / sharing["step_seconds_estimate"], share, places=2)

    def test_a_search_that_cannot_be_made_says_why(self):
        search = ("--rates", "machine.toml", "--search")
        self.expect(
            self.run_kzero("plan", "deck.toml", *search, "--fit", "1kB", "--nodes", "1"),
            3,
            "the deck needs more than 1000 B a rank in every grid",
        )
        (self.folder / "machine.toml").write_text(MACHINE.replace('memory = "1MB"\n', ""))
        self.refused("--search needs the memory of a rank: --fit, or rank.memory in machine.toml", *search)
        self.refused("--search needs the memory of a rank: --fit, or rank.memory in the file of --rates", "--search")
        self.refused("--search without --rates needs --ranks with one number of ranks", "--search", "--fit", "1GB")

    def test_without_a_machine_file_a_search_has_the_rates_of_a_deck(self):
        rates = ("--tflops", "1", "--bandwidth", "1GB", "--memory-bandwidth", "10GB")
        search = ("plan", "deck.toml", "model.heads=4", "--ranks", "4", "--search", "--fit", "1MB", *rates, "--json")
        proposals = json.loads(self.expect(self.run_kzero(*search), 0).stdout)
        self.assertEqual({p["grid"]["tensor"] for p in proposals}, {1, 2, 4})
        settings = [f"{key}={json.dumps(value)}" for key, value in proposals[0]["settings"].items()]
        again = self.run_kzero("plan", "deck.toml", "model.heads=4", *settings, "--ranks", "4", *rates, "--json")
        (planned,) = json.loads(self.expect(again, 0).stdout)
        self.assertEqual(planned["step_seconds_estimate"], proposals[0]["step_seconds_estimate"])


if __name__ == "__main__":
    unittest.main()
