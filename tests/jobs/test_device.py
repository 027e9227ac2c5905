"""tests/device/first_hour.sh without a device: how test programs are run again, what parts find, what the summary says."""

import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/device"))
import algorithms  # noqa: E402
import correctness  # noqa: E402
import counters  # noqa: E402
import features  # noqa: E402
import first_hour  # noqa: E402
import found as findings  # noqa: E402
import gtest_run  # noqa: E402
import nccl  # noqa: E402
import programs  # noqa: E402
import pytorch  # noqa: E402
import sanitizer  # noqa: E402
import speed  # noqa: E402
import training  # noqa: E402

STAND_IN = ROOT / "tests/jobs/device_stand_in.py"
PATIENCE = 60


def runs(pid):
    """Whether a process is there and has not just ended."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


class BundleTest(unittest.TestCase):
    """An unpacked bundle whose programs are small scripts."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="kzero device_"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.bundle = self.folder / "bundle"
        for name in ("bin", "lib", "decks/llama"):
            (self.bundle / name).mkdir(parents=True)
        (self.bundle / "text").write_text("words " * 100)
        for name in ("kzero", "test_runtime"):
            (self.bundle / "bin" / name).symlink_to(STAND_IN)
        launcher = self.bundle / "bin/mpiexec.hydra"
        launcher.write_text('#!/bin/bash\nshift 2\nfor PMI_RANK in 0 1; do PMI_RANK=$PMI_RANK "$@"; done\n')
        launcher.chmod(0o755)
        (self.folder / "logs").mkdir()
        self.machine = programs.Machine(self.bundle, self.folder, self.folder, self.folder / "logs")

    def environment(self, **variables):
        patch = mock.patch.dict(os.environ, variables)
        patch.start()
        self.addCleanup(patch.stop)


class TestPytorch(BundleTest):
    def beside(self, lines):
        script = self.folder / "beside.py"
        script.write_text(f"print({lines!r})\n")
        part = findings.Found("pytorch")
        with mock.patch.object(pytorch, "BESIDE", script):
            pytorch.beside(self.machine, programs.Clock(PATIENCE), part)
        return part

    def test_an_update_beside_a_forward_is_one_line_a_model(self):
        cases = [json.dumps({"case": case, "milliseconds": {"update": 1.5, "beside": 2}}) for case in pytorch.BESIDE_CASES]
        part = self.beside("a warning\n" + "\n".join(cases))
        self.assertEqual([check.state for check in part.checks], [findings.PASSED])
        self.assertEqual(part.values["beside gpt2-1.5b,8,1024"]["update"], 1.5)
        self.assertTrue(part.lines[0].endswith("update 1.50, beside 2.00"), part.lines)

    def test_a_model_that_was_not_measured_is_noticed(self):
        part = self.beside(json.dumps({"case": pytorch.BESIDE_CASES[0], "milliseconds": {}}))
        self.assertEqual([check.state for check in part.checks], [findings.FAILED])


class TestPrograms(BundleTest):
    def results(self, ways, ranks=None, seconds=PATIENCE):
        self.environment(STAND_IN_TESTS=ways)
        return gtest_run.test_program(self.machine, programs.Clock(seconds), "test_runtime", ranks)

    def test_a_process_without_deaths_runs_once(self):
        tests = self.results("A.a=ok A.b=fail B.c/0=ok")
        self.assertEqual((tests.passed, list(tests.failed), tests.died, tests.processes), (["A.a", "B.c/0"], ["A.b"], {}, 1))
        self.assertFalse(tests.is_good())
        self.assertEqual(tests.text(), "2 of 3 passed, 1 failed")

    def test_after_a_death_the_tests_after_it_run(self):
        tests = self.results("A.a=ok A.b=die A.c=ok A.d=die A.e=ok")
        self.assertEqual((tests.passed, list(tests.died), tests.processes), (["A.a", "A.c", "A.e"], ["A.b", "A.d"], 3))
        self.assertIn("about to abort", tests.died["A.b"])
        self.assertIn("SIGABRT", tests.died["A.b"])
        self.assertEqual(tests.text(), "3 of 5 passed, 2 died, 3 processes")

    def test_failures_after_an_error_that_stays_are_tried_again(self):
        tests = self.results("A.a=ok A.b=sticky A.c=ok A.d=fail")
        self.assertEqual((tests.passed, list(tests.died), list(tests.failed)), (["A.a", "A.c"], ["A.b"], ["A.d"]))
        self.assertEqual(tests.processes, 2)

    def test_a_test_that_hangs_is_ended(self):
        with mock.patch.object(gtest_run, "LONGEST_PROCESS", 1):
            tests = self.results("A.a=ok A.b=hang A.c=ok")
        self.assertEqual((tests.passed, list(tests.died)), (["A.a", "A.c"], ["A.b"]))
        self.assertIn("ended after 1 s", tests.died["A.b"])

    def test_a_program_that_does_not_start_is_not_tried_again(self):
        tests = self.results("A.a=early")
        self.assertEqual((tests.processes, tests.is_good()), (1, False))
        self.assertIn("no test ran: exit code 1: error while loading shared libraries", tests.problem)

    def test_the_number_of_processes_is_limited(self):
        with mock.patch.object(gtest_run, "MAX_PROCESSES", 3):
            tests = self.results(" ".join(f"A.t{i}=die" for i in range(9)))
        self.assertEqual((len(tests.died), tests.problem), (3, "given up after 3 processes"))

    def test_without_time_the_others_are_left(self):
        self.assertEqual(self.results("A.a=ok", seconds=1).problem, "no time left for the others")

    def test_a_failure_on_one_of_two_ranks_counts(self):
        tests = self.results("A.a=ok A.b=lone A.c=ok", ranks=2)
        self.assertEqual((tests.passed, list(tests.failed)), (["A.a", "A.c"], ["A.b"]))

    def test_what_a_program_started_ends_with_it(self):
        log = self.folder / "log"
        done = programs.run(["bash", "-c", "sleep 60 & echo $!; wait"], log, 1)
        self.assertIsNone(done.code)
        child, end = int(log.read_text()), time.monotonic() + PATIENCE
        while runs(child):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)


class Hour(BundleTest):
    """first_hour.sh on an archive whose programs are small scripts."""

    def run_it(self, *parts, **variables):
        archive, tools = self.folder / "bundle.tar.xz", self.folder / "tools"
        with tarfile.open(archive, "w:xz", dereference=True) as tar:
            for entry in self.bundle.iterdir():
                tar.add(entry, entry.name)
        tools.mkdir(exist_ok=True)
        for name, text in (("ldd", "libcudart.so.13 => /x/libcudart.so.13 (0x1)"), ("nvidia-smi", "H, 1, 2")):
            (tools / name).write_text(f"#!/bin/bash\necho '{text}'\n")
            (tools / name).chmod(0o755)
        self.output = self.folder / "output"
        done = subprocess.run(
            ["bash", ROOT / "tests/device/first_hour.sh", archive, self.output, *parts],
            env=os.environ | {"PATH": f"{tools}:{os.environ['PATH']}", "TMPDIR": str(self.folder)} | variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.assertEqual(list(self.folder.glob("kzero_first_hour.*")), [])
        return done

    def summary(self, done):
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        text = (self.output / "summary.txt").read_text()
        self.assertTrue(done.stdout.endswith("\n\n" + text), done.stdout)
        return text.splitlines()

    def test_without_a_device_one_line_says_so(self):
        lines = self.summary(self.run_it(STAND_IN_KZERO="no_device"))
        self.assertEqual(len([line for line in lines if "no Cuda device" in line]), 1)
        self.assertNotIn("FAILED", "\n".join(lines))
        self.assertLess(len(lines), 8)
        parts = json.loads((self.output / "results.json").read_text())["parts"]
        staged = [name for _, chains in first_hour.STAGES for chain in chains for name in chain]
        self.assertEqual([part["part"] for part in parts], staged)
        self.assertEqual(sorted(staged), sorted(first_hour.PARTS))

    def test_parts_run_in_the_order_of_their_names_and_their_failures_are_named(self):
        lines = self.summary(self.run_it("bits", "units", STAND_IN_TESTS="A.a=ok A.b=die"))
        self.assertTrue(lines[1].startswith("packaging   5 passed; "), lines)
        self.assertIn("bits        3 passed", lines[2])
        self.assertIn("units       2 FAILED, 4 not run", lines[3])
        facts = json.loads((self.output / "results.json").read_text())["facts"]
        self.assertEqual(facts["card"], "H, 1, 2")
        self.assertEqual(facts["versions"], {"execution": "Cuda"})
        self.assertTrue(any(line.startswith("FAILED  units test_runtime died in A.b: killed by SIGABRT") for line in lines))
        with tarfile.open(self.output / "logs.tar.gz") as tar:
            self.assertIn("logs/units/test_runtime.0.log", tar.getnames())

    def test_a_bundle_that_does_not_start_ends_the_hour(self):
        lines = self.summary(self.run_it(STAND_IN_KZERO="unloadable"))
        self.assertRegex(lines[1], "the bundle's programs do not start here: exit code 127: .*libx.so; no other part was run")
        self.assertEqual(len(lines), 4)

    def test_a_training_that_fails_does_not_end_the_hour(self):
        lines = self.summary(self.run_it("units", STAND_IN_KZERO="broken", STAND_IN_TESTS="A.a=ok"))
        self.assertIn("FAILED  packaging one step: exit code 1: kzero: something else", lines)
        self.assertIn("units       1 passed, 4 not run", lines[2])

    def test_an_unknown_part_is_refused(self):
        done = self.run_it("unit")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no part unit; the parts are packaging units losses", done.stderr)

    def test_what_is_no_bundle_is_an_error(self):
        (self.bundle / "bin/kzero").unlink()
        done = self.run_it()
        self.assertEqual(done.returncode, 2)
        self.assertIn("the archive has no bin/kzero; bundle.sh makes one", done.stderr)

    def test_time_that_is_over_leaves_parts_out(self):
        lines = self.summary(self.run_it("--seconds", "10", "units", "bits", STAND_IN_TESTS="A.a=ok"))
        self.assertIn("units       not run; 0 s; no time left in this call", lines)


class Stages(BundleTest):
    """Which parts run side by side, and for how long."""

    def run_stages(self, stages, seconds=PATIENCE, **parts):
        output = self.folder / "output"
        output.mkdir()
        with mock.patch.dict(first_hour.PARTS, parts, clear=True):
            first_hour.run_stages(self.machine, programs.Clock(seconds), stages, [], self.folder / "logs", output)
        return json.loads((output / "results.json").read_text())["parts"]

    def test_chains_of_a_stage_run_side_by_side_and_stages_do_not(self):
        both, running = threading.Barrier(2, timeout=PATIENCE), []

        def meets(machine, clock, found):
            both.wait()  # broken unless the other chain runs as well
            found.check("met", True, machine.logs.name)

        def alone(machine, clock, found):
            running.append(both.n_waiting)
            found.check("alone", True, "")

        stages = ((50, (("first", "last"), ("second",))), (50, (("third",),)))
        parts = self.run_stages(stages, first=meets, second=meets, last=alone, third=alone)
        self.assertEqual([part["part"] for part in parts], ["first", "last", "second", "third"])
        self.assertEqual([part["state"] for part in parts], ["passed"] * 4)
        self.assertEqual([parts[0]["checks"][0]["text"], parts[2]["checks"][0]["text"]], ["first", "second"])

    def test_named_parts_share_the_time_that_is_left(self):
        left = {}

        def note(machine, clock, found):
            left[machine.logs.name] = clock.left()

        with mock.patch.dict(first_hour.PARTS, {"packaging": note, "bits": note, "speed": note}, clear=True):
            stages = first_hour.stages_of(["speed", "bits", "speed"])
        self.run_stages(stages, seconds=100, packaging=note, bits=note, speed=note)
        self.assertEqual(list(left), ["packaging", "speed", "bits"])
        self.assertAlmostEqual(left["speed"], 50, delta=10)
        self.assertAlmostEqual(left["bits"], 100, delta=10)

    def test_logs_are_short_enough_to_bring_home(self):
        log = self.folder / "logs/part.log"
        log.write_bytes(b"first line\n" + b"x" * first_hour.LONGEST_LOG)
        first_hour.shorten(log)
        text = log.read_bytes()
        self.assertTrue(text.startswith(b"(only the end of this log was kept)\nx"))
        self.assertLess(len(text), first_hour.LONGEST_LOG + 100)


class Findings(BundleTest):
    def part(self, function, clock=PATIENCE):
        found = findings.Found("part")
        function(self.machine, programs.Clock(clock), found)
        return {check.name: (check.state, check.text) for check in found.checks}

    def references(self, fp32=10.0, bf16=10.0):
        runs = {"fp32": {"loss": [fp32 - i for i in range(5)]}, "bf16": {"loss": [bf16 - i for i in range(5)]}}
        weights = {"sha256": "", "samples": {}}
        (self.bundle / "references.json").write_text(json.dumps({"runs": runs, "weights": weights}))

    def test_losses_are_compared_with_the_hosts(self):
        self.references(fp32=10.01)
        checks = self.part(correctness.losses)
        self.assertEqual(checks["fp32 losses"], ("FAILED", "differ from the host's by 1.00e-02, at most 1e-03"))
        self.assertEqual(checks["bf16 losses"][0], "passed")

    def test_a_bundle_without_references_is_said(self):
        self.assertEqual(self.part(correctness.losses), {"losses": ("not run", "the bundle has no references")})

    def test_a_host_computes_the_references_in_a_folder_named_from_here(self):
        command = [sys.executable, "-B", ROOT / "tests/device/references.py", "bundle/bin/kzero", "bundle/references.json"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({state for state, _ in self.part(correctness.losses).values()}, {"passed"})
        self.assertEqual({state for state, _ in self.part(features.features).values()}, {"passed"})

    def test_steps_with_and_without_a_table_of_algorithms_are_compared(self):
        checks = self.part(algorithms.algorithms)
        self.assertEqual({state for state, _ in checks.values()}, {"passed"})
        self.assertEqual(checks["124M 32x1024, twice"][1], "the same bits")
        self.assertEqual(len(checks), 3 * 3 + 2)
        self.assertEqual((self.machine.logs / "1.5B_8x1024.toml").read_text(), "a table\n")

    def test_a_rehearsal_changes_sizes_and_back_ends_alone(self):
        keys = {
            "model.layers": 48,
            "run.attention": "cudnn",
            "run.communicator": "nccl",
            "zero.reduction": "library",
            "zero.stage": 2,
        }
        changed = training.rehearsed("gpt2-124m.toml", keys)
        here = {"run.communicator": "mpi", "run.attention": "kzero"}
        self.assertEqual(changed, training.SMALL_MODEL | here | {"zero.stage": 2})
        self.assertEqual(training.rehearsed("gpu/llama-3.2-1b.toml", keys)["model.kv_heads"], 2)

    def variables_of_ranks(self, machine):
        (self.bundle / "bin/variables").write_text('#!/bin/bash\necho "$NCCL_HOSTID $NCCL_NET $NCCL_ALGO ${NCCL_PROTO-none}"\n')
        (self.bundle / "bin/variables").chmod(0o755)
        return machine.run("variables", machine.command("variables", ranks=2), PATIENCE).text().splitlines()

    def test_ranks_over_nccl_are_on_hosts_of_their_own(self):
        self.environment(NCCL_ALGO="Tree", NCCL_PROTO="")
        self.assertEqual(
            self.variables_of_ranks(nccl.with_nccl(self.machine, "x")), [f"rank{r} Socket Tree none" for r in (0, 1)]
        )
        self.assertEqual(self.variables_of_ranks(self.machine), ["  Tree none"] * 2)

    def test_the_transport_is_read_from_nccls_logs(self):
        (self.machine.logs / "nccl_stage_1.7.nccl").write_text(
            "h:7 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0\n"
        )
        self.assertEqual(nccl.transport(self.machine, "stage 1"), ["NET/Socket/0"])

    def test_a_rank_is_found_by_its_metrics(self):
        metrics = self.folder / "run.jsonl"
        process = subprocess.Popen(["bash", "-c", "read", metrics], stdin=subprocess.PIPE, env=os.environ | {"PMI_RANK": "1"})
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        end = time.monotonic() + PATIENCE
        while nccl.rank_of(metrics, 1) != process.pid:
            self.assertLess(time.monotonic(), end)
        self.assertIsNone(nccl.rank_of(metrics, 0))

    def test_attentions_are_compared(self):
        checks = self.part(correctness.attention)
        self.assertEqual([state for state, _ in checks.values()], ["passed", "passed"])
        with mock.patch.object(correctness, "BF16_LOSS", 1e-4):
            self.assertEqual(self.part(correctness.attention)["cudnn and kzero"][0], "FAILED")

    def test_missing_steps_and_numbers_are_far_away(self):
        self.assertEqual(training.largest_difference([1.0, 2.0], [1.0, 2.5]), 0.5)
        for a, b in (([1.0], [1.0, 2.0]), ([], []), ([1.0, None], [1.0, 1.0])):
            self.assertEqual(training.largest_difference(a, b), float("inf"))

    def test_weights_are_sampled_at_both_ends(self):
        path = self.folder / "weights.safetensors"
        header = json.dumps({"w": {"dtype": "F32", "shape": [20], "data_offsets": [0, 80]}}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<20f", *range(20)))
        (sample,) = training.weights_of(path)["samples"].values()
        self.assertEqual(sample, [*map(float, range(8)), *map(float, range(12, 20))])
        self.assertEqual(training.farthest_sample({"w": [1.0, 4.0]}, {"w": [1.0, 5.0]}), 0.25)
        self.assertEqual(training.farthest_sample({"w": [1.0]}, {"v": [1.0]}), float("inf"))

    def test_own_times_leave_out_what_is_within(self):
        def span(name, kind, begin, length, **arguments):
            return {"ph": "X", "pid": 0, "tid": 0, "name": name, "cat": kind, "ts": begin, "dur": length, "args": arguments}

        times = speed.own_times(
            [
                span("kzero::engine::update_unit block 3", "phase", 0, 9000),
                span("kzero::tensor::multiply_matrices bf16 8 8 8 NN", "product", 1000, 2000, gflop=4.0),
                span("kzero::kernels::k", "kernel", 4000, 1000),
            ]
        )
        self.assertEqual(times["phase", "update_unit"][0], 6.0)
        self.assertEqual(times["product", "bf16 8 8 8 NN"], [2.0, 1, 4.0])
        self.assertIn("bf16 8 8 8 NN 2.00 (1) at 2 TFLOP/s; k 1.00 (1)", "\n".join(speed.profile_lines("case", times)))

    def test_sanitizer_counts_errors_also_of_runs_that_were_ended(self):
        for text, code, expected in (
            ("========= ERROR SUMMARY: 0 errors", 0, "passed"),
            ("========= Invalid __global__ write of size 4 bytes\n========= ERROR SUMMARY: 2 errors", 1, "FAILED"),
            ("========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)", 1, "FAILED"),
            ("[ RUN      ] A.a\n[       OK ] A.a (1 ms)\n", None, "passed"),
            ("========= Invalid __global__ read of size 2 bytes\n", None, "FAILED"),
            ("========= Error: Device not supported", 1, "FAILED"),
        ):
            with self.subTest(text):
                log = self.folder / "log"
                log.write_text(text)
                found = findings.Found("sanitizer")
                sanitizer.report(found, "memcheck", programs.Done(code, 9.0, log))
                self.assertEqual(found.checks[0].state, expected)
                reported = "Invalid" in text or "Error: " in text
                self.assertEqual(found.values["memcheck"], text.splitlines() if reported else [])

    def test_counters_are_read_from_csv_after_other_output(self):
        rows = counters.rows_of(
            'step 1\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
            '"0","void f<kzero::kernels::sum_rows<float>>","gpu__time_duration.sum","ns","1,500"\n'
            '"1","void f<kzero::kernels::sum_rows<float>>","gpu__time_duration.sum","us","2"\n'
        )
        self.assertEqual(rows, {"sum_rows": {"gpu__time_duration.sum": 2.0}})

    def test_a_summary_has_at_most_sixty_lines(self):
        part = findings.Found("units")
        for i in range(100):
            part.check(f"test {i}", False, "line\nanother")
        part.lines = ["measured"] * 100
        part.close()
        lines = findings.summary(["head"], [part])
        self.assertEqual(len(lines), 60)
        self.assertEqual(lines[-1], f"... and {200 - 57} more lines in results.json")
        self.assertIn("FAILED  units test 0: line", lines)
        self.assertIn("measured", lines)


if __name__ == "__main__":
    unittest.main()
