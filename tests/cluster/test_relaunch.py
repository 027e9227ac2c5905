"""Jobs that lose a node and resume on the others: under Slurm inside their allocation, without a batch system by mpiexec.sh."""

import os
import re
import subprocess
import sys
from pathlib import Path

from nodes.requirements import SLURM
from slurm_over_nodes import SlurmOverNodes, wait_for
from testing import ClusterTest, main
from training import KZERO, MODEL, ROOT, Training, rank_environment

DEFAULTS = [setting for setting in MODEL if "micro_batch" not in setting]  # the number of ranks decides it
FINAL = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}
VARIABLES = {"KZERO": str(KZERO), "KZERO_JOBSCRIPTS": f"{ROOT}/jobscripts", "KZERO_GUARD_SECONDS": "5", **rank_environment()}


class RelaunchTest(ClusterTest):
    SETTINGS = ("train.steps=80", "checkpoint.every=5")
    MICRO_BATCH = 2  # the default of the first launch

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        alone = Training(cls.cluster, "alone", *cls.SETTINGS, f"train.micro_batch={cls.MICRO_BATCH}", model=DEFAULTS)
        outcome = alone.launch(cls.nodes[:1]).wait()
        assert alone.exit_code(outcome) == 0, outcome.output
        cls.reference = alone.verify()

    def expect_resumed(self, training, hosts, output):
        """The hosts of every start and the bits. Prints how long after the loss the next step was made."""
        self.assertEqual([record["hosts"] for record in training.records("start")], hosts, output)
        self.assertEqual(training.verify(), self.reference)
        resumed = training.records("start")[-1]["time"]
        following = min(record["time"] for record in training.records("step") if record["time"] > resumed)
        print(f"{following - self.lost_at:.1f} s from the loss to the next step", flush=True)
        print("".join(f"  {line}\n" for line in re.findall(r"^\d+-\d+-\d+ .*$", output, re.M)), flush=True)

    def lose(self, training, node, how):
        """Takes a node away while the training is between two checkpoints. Keeps the time of it by the nodes' clock."""
        wait_for("a checkpoint", lambda: training.records("checkpoint"))
        steps = len(training.records("step"))
        wait_for("steps after it", lambda: len(training.records("step")) >= steps + 2)
        self.lost_at = float(subprocess.check_output(["date", "+%s.%N"], text=True))
        getattr(node, how)()
        self.addCleanup(node.boot)


class SlurmRelaunchTest(RelaunchTest):
    PROGRAMS = SLURM
    TIMEOUT = 20  # SlurmdTimeout

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = SlurmOverNodes(cls.cluster, timeout=cls.TIMEOUT)
        cls.addClassCleanup(cls.slurm.stop)

    def setUp(self):
        self.addCleanup(self.slurm.cancel_all)

    def submit(self, training, *options):
        """The number of a job with one rank a node."""
        return self.slurm(
            "sbatch",
            "--parsable",
            "--ntasks-per-node=1",
            "--cpus-per-task=1",
            "--time=20",
            *options,
            f"{ROOT}/jobscripts/slurm_cpu.sh",
            str(training.deck),
            *training.overrides(),
            env=VARIABLES,
        )

    def output(self, job):
        path = self.cluster.work / f"kzero-{job}.out"
        return path.read_text() if path.exists() else "no output"

    def wait_completed(self, job):
        found = wait_for(f"the end of job {job}", lambda: (state := self.slurm.state(job)) in FINAL and state)
        self.assertEqual(found, "COMPLETED", self.output(job))
        return self.slurm.facts(job)

    def check_in_the_allocation(self, name, how):
        training = Training(self.cluster, name, *self.SETTINGS, model=DEFAULTS)
        job = self.submit(training, "--nodes=4")
        self.lose(training, self.nodes[2], how)
        wait_for("the end of the training", lambda: "exit code" in self.output(job))
        # Otherwise Slurm would wait for the node before it considers the job completed.
        self.slurm("scontrol", "update", "NodeName=node3", "State=DOWN", "Reason=test", check=False)
        self.assertEqual(self.wait_completed(job)["Restarts"], "0")
        self.assertIn("3 ranks on 3 of 4 nodes (no answer from node3)", self.output(job))
        self.expect_resumed(training, [self.names, ["node1", "node2", "node4"]], self.output(job))


class InAllocation(SlurmRelaunchTest):
    def test_a_killed_node(self):
        """Its connections are closed."""
        self.check_in_the_allocation("killed", "kill")


class InAllocationPower(SlurmRelaunchTest):
    def test_a_node_without_power(self):
        self.check_in_the_allocation("power", "power_off")


class InAllocationUnknown(SlurmRelaunchTest):
    TIMEOUT = 300  # as Slurm has it by default: the run itself finds the loss

    def test_a_node_of_whose_loss_slurm_does_not_know(self):
        self.check_in_the_allocation("unknown", "power_off")


class FirstNode(SlurmRelaunchTest):
    SETTINGS = ("train.steps=200", "checkpoint.every=5")
    MICRO_BATCH = 4

    def test_the_node_on_which_the_script_runs(self):
        """Another node requeues the job. slurmctld is on node1, which therefore is not part of the job."""
        training = Training(self.cluster, "first", *self.SETTINGS, model=DEFAULTS)
        job = self.submit(training, "--nodes=2", "--exclude=node1")
        wait_for("the guard", lambda: any("slurm_guard.sh" in line for _, line in self.nodes[2].processes()))
        self.lose(training, self.nodes[1], "power_off")
        self.slurm.wait_restart(job, 1)
        self.assertIn("lost node2, where its script ran: submitted again", self.output(job))
        self.slurm.start_now(job)
        self.wait_completed(job)
        self.expect_resumed(training, [["node2", "node3"], ["node3", "node4"]], self.output(job))


class HostsTest(RelaunchTest):
    def start(self, training, hosts, **variables):
        """mpiexec.sh on node1, as a process, and the file of its output."""
        (self.cluster.work / "hosts").write_text("".join(f"{host}\n" for host in hosts))
        command = ["bash", f"{ROOT}/jobscripts/mpiexec.sh", "hosts", str(training.deck), *training.overrides()]
        output = self.cluster.work / f"{training.folder.name}.out"
        variables |= {**VARIABLES, "HYDRA_LAUNCHER_EXEC": f"{self.cluster.folder}/ssh"}
        with output.open("w") as file:
            script = self.nodes[0].popen(command, variables, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: script.poll() is None and script.kill())
        return script, output

    def check_hosts(self, name, how, lost=2, first=0, **variables):
        """The hosts are used in their order from the first one on; the lost one goes down."""
        training = Training(self.cluster, name, *self.SETTINGS, model=DEFAULTS)
        hosts = self.names[first:] + self.names[:first]
        script, output = self.start(training, hosts, **variables)
        self.lose(training, self.nodes[lost], how)
        self.assertEqual(script.wait(300), 0, output.read_text())
        lost_name = self.names[lost]
        self.assertIn(f"3 ranks on 3 of 4 nodes (no answer from {lost_name})", output.read_text())
        self.expect_resumed(training, [hosts, [host for host in hosts if host != lost_name]], output.read_text())


class Hosts(HostsTest):
    def test_a_killed_host(self):
        self.check_hosts("host_killed", "kill", KZERO_PROBE_SECONDS="8")  # mpiexec waits for the dead host until then


class HostsPower(HostsTest):
    def test_a_host_without_power(self):
        self.check_hosts("host_power", "power_off")


class FirstHost(HostsTest):
    def test_the_host_of_rank_0_without_power(self):
        self.check_hosts("first_host", "power_off", lost=1, first=1)


class TwoLosses(HostsTest):
    SETTINGS = ("train.steps=400", "checkpoint.every=10", "checkpoint.keep=2")

    def test_the_report_of_a_run_that_loses_two_hosts(self):
        """KZERO_REPORT names a folder for the report and its pictures."""
        training = Training(self.cluster, "two_losses", *self.SETTINGS, model=DEFAULTS)
        script, output = self.start(training, self.names, KZERO_PROBE_SECONDS="8")
        self.lose(training, self.nodes[3], "kill")
        wait_for("the second launch", lambda: len(training.records("start")) == 2)
        self.lose(training, self.nodes[2], "power_off")
        self.assertEqual(script.wait(400), 0, output.read_text())
        self.expect_resumed(training, [self.names, self.names[:3], self.names[:2]], output.read_text())
        folder = Path(os.environ.get("KZERO_REPORT", training.folder / "report"))
        command = [
            sys.executable,
            "-B",
            ROOT / "postprocess/report.py",
            training.folder / "metrics.jsonl",
            "-o",
            folder / "report.html",
        ]
        folder.mkdir(exist_ok=True)
        subprocess.run([*command, "--png", folder], check=True, stdout=subprocess.DEVNULL)
        page = (folder / "report.html").read_text()
        interruptions = page[page.index("Interruptions of ") :].split("</table>")[0]
        self.assertEqual(interruptions.count("<tr"), 1 + 2, interruptions)  # a heading, and a row for each loss


if __name__ == "__main__":
    main()
