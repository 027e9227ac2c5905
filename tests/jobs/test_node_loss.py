"""Jobs of a real Slurm that lose a node. Its nodes are one machine; tests/cluster has machines that know nothing of one another."""

import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import one_launch
from launch import DECK, PATIENCE
from one_node_slurm import wait_for
from several_nodes_slurm import SeveralNodesSlurm
from test_jobs import ROOT, JobTest

TWO = ("--nodes=1-2", "--ntasks-per-node=2", "--time=10")  # nodes and ranks as in slurm_cpu.sh
STEPS = 150


class NodeLossTest(JobTest):
    @classmethod
    def setUpClass(cls):
        cls.slurm = SeveralNodesSlurm(cpus=2, nodes=2)
        cls.addClassCleanup(cls.slurm.stop)

    def setUp(self):
        super().setUp()
        self.slurm.restore()
        # The number of ranks decides train.micro_batch: 2 on four of them. A quiet machine needs seconds for the steps.
        values = {"layers": 2, "hidden": 96, "sequence": 96, "steps": STEPS, "global_batch": 8}
        deck = DECK.replace("micro_batch = 1\n", "").replace('folder = "saved"', 'folder = "saved"\nevery = 10')
        for key, value in values.items():
            deck = re.sub(rf"(?m)^{key} = .*", f"{key} = {value}", deck)
        (self.folder / "deck.toml").write_text(deck)

    def submit_two(self, *arguments, options=TWO, **variables):
        return self.submit("slurm_cpu.sh", "deck.toml", *arguments, options=options, KZERO_GUARD_SECONDS="2", **variables)

    def grids(self):
        return [start["grid"]["data"] for start in self.metrics("start")]


class InItsAllocation(NodeLossTest):
    def test_a_job_keeps_its_other_node(self):
        job = self.submit_two()
        self.wait_steps(12)
        self.slurm.lose_node("n2")
        facts = self.wait_end(job, "COMPLETED")
        self.assertEqual(facts["Restarts"], "0")
        self.assertIn("launch 1: 2 ranks on 1 of 2 nodes (no answer from n2)", self.output(job))
        self.assertEqual(self.grids(), [4, 2])
        one_launch.expect_its_bits(self, "4", STEPS)
        self.assertEqual([path.name for path in self.folder.glob("kzero-*")], [f"kzero-{job}.out"])

    def test_a_heterogeneous_job_trains_on_its_first_part(self):
        options = [":", "--nodes=1", "--ntasks=1", "--cpus-per-task=1", "--time=10"]
        job = self.submit("slurm_cpu.sh", "deck.toml", "run.max_steps=2", options=options)
        self.slurm.wait_restart(job, 1)
        self.assertIn(f"job {job}: a heterogeneous job: trains on its first part only", self.output(job))
        (start,) = self.metrics("start")
        self.assertEqual((start["grid"]["data"], start["limit"]["source"]), (2, "SLURM_JOB_END_TIME"))


class Silence(NodeLossTest):
    def test_a_node_that_falls_silent(self):
        job = self.submit_two()
        self.wait_steps(12)
        self.slurm.kill_node("n2")
        facts = self.wait_end(job, "COMPLETED")
        self.assertEqual(facts["Restarts"], "0")
        self.assertIn("launch 1: 2 ranks on 1 of 2 nodes (no answer from n2)", self.output(job))
        self.assertEqual(self.grids(), [4, 2])


class SubmittedAgain(NodeLossTest):
    def finish(self, job, grids):
        """Repeats the script's request: a Slurm without an accounting database may be too slow for it."""
        time.sleep(6)
        self.slurm("scontrol", "update", f"JobId={job}", "NumTasks=2", "StartTime=now+3", check=False)
        self.wait_end(job, "COMPLETED")
        self.assertEqual(self.grids(), grids)
        one_launch.expect_its_bits(self, "4", STEPS)

    def test_a_job_whose_script_was_on_the_lost_node(self):
        job = self.submit_two()
        self.wait_steps(12)
        self.slurm("scancel", "--signal=STOP", f"{job}.0")  # the training waits for the guard
        wait_for("the guard on the other node", lambda: self.slurm.runs("n2", "slurm_guard.sh"))
        time.sleep(3)  # until its launch is complete
        self.slurm.kill_node("n1")
        self.slurm.wait_restart(job, 1)
        self.assertIn("lost n1, where its script ran: submitted again", self.output(job))
        self.finish(job, [4, 2])

    def test_a_job_that_may_not_launch_again(self):
        job = self.submit_two(KZERO_MAX_RELAUNCH="0")
        self.wait_steps(12)
        self.slurm.lose_node("n2")
        self.slurm.wait_restart(job, 1)
        self.assertIn("not launched again: KZERO_MAX_RELAUNCH is 0", self.output(job))
        self.assertIn("lost n2: submitted again", self.output(job))
        self.finish(job, [4, 2])

    def test_a_job_whose_node_left_has_too_little_memory(self):
        # They need more than the MiB that Slurm gives the job of a node, of which the program does not know.
        job = self.submit_two(options=[*TWO, "--mem=1"])
        self.wait_steps(12)
        self.slurm.lose_node("n2")
        self.slurm.wait_restart(job, 1)
        self.assertRegex(
            self.output(job), r"not launched again: 2 ranks on 1 of 2 nodes need \d+\.\dMiB a node, and n1 has 1\.0MiB"
        )

    def test_a_job_that_stops_in_time_after_it_has_lost_a_node(self):
        job = self.submit_two()
        self.wait_steps(12)
        self.slurm.lose_node("n2")
        wait_for("the second launch", lambda: len(self.metrics("start")) == 2)
        self.wait_steps(len(self.metrics("step")) + 2)
        self.slurm("scancel", "--signal=USR1", job)
        self.slurm.wait_restart(job, 1)
        self.finish(job, [4, 2, 2])
        self.assertEqual([record["reason"] for record in self.metrics("end")], ["signal", "completed"])

    def test_a_job_that_stops_in_time_and_has_more_nodes_then(self):
        """Its first launch had micro-batches of 4, of which there are two."""
        self.slurm.lose_node("n2")
        job = self.submit_two("run.max_steps=80")
        self.slurm.wait_restart(job, 1)
        self.slurm.restore()
        self.slurm.start_now(job)
        self.wait_end(job, "COMPLETED")
        self.assertIn("2 of 4 ranks, as in the job's first launch", self.output(job))
        self.assertEqual(self.grids(), [2, 2])
        self.assertIn("resumes bit for bit", self.output(job))

    def test_a_chain_goes_on_without_the_node(self):
        chain = [*TWO, "--job-name=kzero-20261129-120000-1"]  # as chain.sh names it
        job = self.submit_two(options=[*chain, "--no-requeue"], KZERO_MAX_RELAUNCH="0")
        self.wait_steps(12)
        self.slurm.lose_node("n2")
        self.wait_end(job, "FAILED")
        self.assertIn("lost n2: the next job of the chain continues", self.output(job))
        following = self.submit_two(options=chain)
        self.wait_end(following, "COMPLETED")
        self.assertEqual(self.grids(), [4, 2])
        one_launch.expect_its_bits(self, "4", STEPS)


class Requeue(unittest.TestCase):
    """Requests to Slurm, whether it heeds them or not."""

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def calls(self, *command, scontrol="", **variables):
        """(exit code, the calls of a scontrol that does what it is told) of a command."""
        (self.folder / "sleep").write_text("#!/bin/bash\n")
        (self.folder / "scontrol").write_text(f"""#!/bin/bash
[[ "$1 $2" != "show hostnames" ]] || exec printf 'n%d\\n' $(eval echo $3)
[[ $1 != show ]] || exit
echo "$*" >>{self.folder}/calls
{scontrol}
""")
        for name in ("sleep", "scontrol"):
            (self.folder / name).chmod(0o755)
        (self.folder / "calls").write_text("")
        done = subprocess.run(
            ["bash", *command],
            env={"PATH": f"{self.folder}:/usr/bin:/bin", **variables},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        return done.returncode, (self.folder / "calls").read_text().splitlines()

    def requeue(self, scontrol=""):
        return self.calls(ROOT / "jobscripts/slurm_requeue.sh", "7", "NumTasks=6", "StartTime=now+15", scontrol=scontrol)

    def test_a_change_follows_the_requeue(self):
        asked = ["requeue 7", "update JobId=7 NumTasks=6 StartTime=now+15"]
        self.assertEqual(self.requeue(), (0, asked))
        # Slurm ends what it requeues: a signal to the script does not come between.
        self.assertEqual(self.requeue('[[ $1 == update ]] || kill -TERM $PPID'), (0, asked))

    def test_a_job_that_cannot_be_requeued_is_not_changed(self):
        self.assertEqual(self.requeue("exit 1"), (1, ["requeue 7"]))

    def submit_again(self, nodes, ranks_per_node, missing, lost):
        """The calls when a job on so many nodes misses some of them, of which its latest launch lost some."""
        (self.folder / "job").write_text(f"""
source {ROOT}/jobscripts/job.sh
missing=({" ".join(missing)}) lost=({" ".join(lost)})
submit_again why
""")
        return self.calls(
            "job",
            "deck.toml",
            KZERO="true",
            SLURM_JOB_ID="7",
            SLURM_JOB_NODELIST=f"{{1..{nodes}}}",
            SLURM_TASKS_PER_NODE=f"{ranks_per_node}(x{nodes})",
            SLURM_JOB_END_TIME="1",
        )[1]

    def test_a_job_without_losses_keeps_its_size(self):
        self.assertEqual(self.submit_again(4, 2, [], []), ["requeue 7"])

    def test_a_job_with_missing_nodes_asks_for_tasks_that_the_others_can_hold(self):
        """Slurm allocates at most one node for each task, and at least as many as the tasks fill."""
        for nodes, ranks_per_node, missing, tasks in (
            (2, 2, ["n2"], 2),
            (4, 1, ["n2"], 3),
            (4, 2, ["n2", "n3", "n4"], 2),
            (4, 8, ["n1"], 4),
        ):
            with self.subTest(nodes=nodes, ranks_per_node=ranks_per_node, missing=missing):
                calls = self.submit_again(nodes, ranks_per_node, missing, missing[:1])
                self.assertEqual(calls, ["requeue 7", f"update JobId=7 NumTasks={tasks} StartTime=now+15"])

    def test_a_job_that_stops_in_time_without_a_node_keeps_its_start(self):
        self.assertEqual(self.submit_again(4, 1, ["n2"], []), ["requeue 7", "update JobId=7 NumTasks=3"])

    def test_a_guard_ends_with_its_parent(self):
        """On a node that only seems to be dead nobody else would end it."""
        for name, answer in (("scontrol", "n1"), ("squeue", "n1")):
            (self.folder / name).write_text(f"#!/bin/bash\necho {answer}\n")
            (self.folder / name).chmod(0o755)
        guard = f"bash {ROOT}/jobscripts/slurm_guard.sh 7 n1 2 >/dev/null"
        done = subprocess.run(
            ["bash", "-c", f"{guard} & sleep 2; kill -0 $! && echo $!"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={"PATH": f"{self.folder}:/usr/bin:/bin", "KZERO_GUARD_SECONDS": "0.2"},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        wait_for("the end of the guard", lambda: not Path("/proc", done.stdout.strip()).exists())


if __name__ == "__main__":
    unittest.main()
