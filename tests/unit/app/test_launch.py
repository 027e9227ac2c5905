"""kzero check --launch: what it says of launches that are well, and of ranks that differ. Arguments: names of test classes; none: all.

What is slow depends on what else the machine does, so no test expects that nothing is odd."""

import json
import os
import resource
import stat
import subprocess
import tomllib
import unittest
from pathlib import Path
from unittest import mock

from launch import FOR_DEVICES, KZERO, LAUNCHER, PATIENCE, LaunchTest

NOTE = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"  # before the 20 bytes of a build id (SHA-1)


class CheckLaunch(LaunchTest):
    def check(self, *arguments, ranks=None):
        return self.run_kzero("check", "--launch", "deck.toml", *arguments, ranks=ranks)

    def found(self, *arguments, ranks=None):
        return json.loads(self.expect(self.check("--json", *arguments, ranks=ranks), 0).stdout)

    def check_unequally(self, *parts):
        """Each part: variables of its ranks and the program that they run, a rank each."""
        command = list(LAUNCHER[:1])
        for variables, program in parts:
            settings = [word for name, value in variables.items() for word in ("-env", name, value)]
            command += [
                *([":"] if len(command) > 1 else []),
                *LAUNCHER[1:],
                "1",
                *settings,
                str(program),
                "check",
                "--launch",
                "deck.toml",
            ]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)

    def last_line(self, result):
        return result.stdout.rstrip("\n").split("\n")[-1]


class Alike(CheckLaunch):
    def test_one_rank_has_nothing_to_compare_with(self):
        self.assertEqual(
            self.last_line(self.expect(self.check(), 0)), "verdict     good: there is one rank, so there is nothing to compare"
        )
        self.assertEqual(self.found()["odd"], [])

    def test_ranks_of_a_node_agree(self):
        for ranks in (2, 4):
            found = self.found(ranks=ranks)
            self.assertEqual((found["ranks"], found["agrees"], found["differences"], found["links"]), (ranks, True, [], []))
            self.assertTrue(
                {"program", "MPI library", "arithmetic", "bits of products", "libraries", "variables"} <= set(found["same"])
            )
            (node,) = found["nodes"]
            self.assertEqual((node["node"], node["ranks"]), (os.uname().nodename, list(range(ranks))))
            self.assertIsNone(node["between"])
            for figure in (node["operations_per_second"], node["memory_bytes_per_second"], *node["within"].values()):
                self.assertGreater(figure, 0)

    def test_nodes_are_compared_and_their_links_measured(self):
        # MPICH then reports even ranks on one node and odd ranks on another.
        with mock.patch.dict(os.environ, {"MPIR_CVAR_NUM_CLIQUES": "2"}):
            found = self.found(ranks=4)
            text = self.expect(self.check(ranks=4), 0).stdout
        self.assertEqual([node["ranks"] for node in found["nodes"]], [[0, 2], [1, 3]])
        (link,) = found["links"]
        self.assertEqual(link["nodes"], [os.uname().nodename] * 2)
        for node in found["nodes"]:
            self.assertEqual(node["between"], {k: link[k] for k in ("latency_seconds", "bytes_per_second")})
            self.assertLess(abs(node["clock_ahead_seconds"]), 1 + node["clock_accuracy_seconds"])
        self.assertIn("launch      4 ranks on 2 nodes, 1 thread a rank", text)
        self.assertIn("\nmedian ", text)
        self.assertTrue(text.rstrip("\n").split("\n")[-1].startswith("verdict     "), text)

    def test_what_is_measured_becomes_a_rates_file(self):
        with mock.patch.dict(os.environ, {"MPIR_CVAR_NUM_CLIQUES": "2"}):
            self.expect(self.check("--rates", "machine.toml", ranks=4), 0)
        machine = tomllib.loads((self.folder / "machine.toml").read_text())
        self.assertEqual(machine["node"]["ranks"], 2)
        rates = {"tflops_fp32"} if FOR_DEVICES else {"tflops_fp32", "tflops_bf16", "tflops_fp16"}
        self.assertEqual({key for key in machine["rank"] if key.startswith("tflops")}, rates)
        plan = self.run_kzero("plan", "deck.toml", "--rates", "machine.toml", "--nodes", "1,2", "--json")
        for planned in json.loads(self.expect(plan, 0).stdout):
            self.assertGreater(planned["step_seconds_estimate"], 0)
        taken = self.check("--rates", "machine.toml", ranks=4)
        self.expect(taken, 4, "machine.toml exists; --rates writes a new file")

    def test_a_rates_file_of_one_node_is_for_one_node(self):
        self.expect(self.check("--rates", "machine.toml", ranks=2), 0)
        plan = ("plan", "deck.toml", "--rates", "machine.toml", "--nodes")
        self.expect(self.run_kzero(*plan, "1"), 0)
        self.expect(self.run_kzero(*plan, "2"), 2, "machine.toml has no rates between nodes, and 2 nodes are planned")

    def test_options_that_do_not_go_together(self):
        self.expect(self.run_kzero("check", "deck.toml", "--launch", "--ranks", "2"), 2, "excludes")
        self.expect(self.run_kzero("check", "deck.toml", "--launch", "--files"), 2, "excludes")
        for option in (["--json"], ["--rates", "x.toml"]):
            self.expect(self.run_kzero("check", "deck.toml", *option), 2, "requires --launch")


class Different(CheckLaunch):
    def test_an_environment_that_differs_is_told_but_may_run(self):
        result = self.expect(self.check_unequally(({}, KZERO), ({"UCX_LOG_LEVEL": "error"}, KZERO), ({}, KZERO)), 0)
        self.assertRegex(
            result.stdout, r"\ndiffers +variable UCX_LOG_LEVEL: not set on 2 ranks on \S+, first 0; error on rank 1 on "
        )

    def test_threads_that_differ_are_told(self):
        result = self.expect(self.check_unequally(({}, KZERO), ({"OMP_NUM_THREADS": "2"}, KZERO)), 0)
        self.assertRegex(result.stdout, r"\ndiffers +threads of a rank: ")

    @unittest.skipIf(FOR_DEVICES, "products are a device's")
    def test_other_arithmetic_cannot_be_one_run(self):
        result = self.expect(self.check_unequally(({}, KZERO), ({}, KZERO), ({"DNNL_MAX_CPU_ISA": "SSE41"}, KZERO)), 1)
        self.assertRegex(result.stdout, r"\nerror +arithmetic: .* on rank 2 on ")
        self.assertEqual(self.last_line(result), "verdict     not one run: the ranks differ in arithmetic")

    def test_another_build_of_the_program_is_named(self):
        program = Path(KZERO).read_bytes()
        at = program.find(NOTE)
        if at < 0:
            self.skipTest("this program has no build id")
        other = self.folder / "kzero"
        at += len(NOTE)
        other.write_bytes(program[:at] + bytes(20) + program[at + 20 :])
        other.chmod(other.stat().st_mode | stat.S_IXUSR)
        self.expect(
            self.check_unequally(({}, KZERO), ({}, KZERO), ({}, other)),
            1,
            "do not run the same program",
            f"{'0' * 40} on rank 2 on {os.uname().nodename}",
        )

    def test_decks_that_differ_are_refused_as_by_a_run(self):
        command = [
            *LAUNCHER,
            "1",
            KZERO,
            "check",
            "--launch",
            "deck.toml",
            ":",
            *LAUNCHER[1:],
            "1",
            KZERO,
            "check",
            "--launch",
            "deck.toml",
            "train.seed=2",
        ]
        result = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
        self.expect(result, 2, "rank 1 has train.seed = 2")


class Start(CheckLaunch):
    def twice(self, ranks):
        """Two programs one after another in the tasks of a launch, as in srun --pty bash."""
        once = f'"{KZERO}" check --launch deck.toml'
        command = [*LAUNCHER, str(ranks), "bash", "-c", f"{once} >first && {once}"]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)

    def test_a_second_program_in_the_task_of_a_launch_starts_alone(self):
        self.assertIn("verdict     good: there is one rank", self.expect(self.twice(1), 0).stdout)

    def test_a_second_program_in_several_tasks_is_refused(self):
        result = self.twice(2)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("an MPI program has run in the tasks of this launch before", result.stderr)

    def test_a_limit_on_threads_is_named(self):
        user = {"user": 54321, "group": 54321, "extra_groups": []} if os.getuid() == 0 else {}  # no limit counts for root
        try:
            result = subprocess.run(
                [KZERO, "--version"],
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)),
                **user,
            )
        except PermissionError:
            self.skipTest("another user than root may not read the program's folder")
        self.expect(result, 1, "kzero: no more threads: a limit on processes and threads is reached (ulimit -u")
        self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
