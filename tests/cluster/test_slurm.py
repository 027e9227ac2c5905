"""The job scripts under a Slurm of several nodes."""

from nodes.requirements import SLURM
from slurm_over_nodes import SlurmOverNodes, wait_for
from testing import ClusterTest, main
from training import KZERO, MODEL, ROOT, Training, rank_environment, read_checkpoint

STEPS = ("train.steps=8", "checkpoint.every=4")
FINAL = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}


class SlurmTest(ClusterTest):
    PROGRAMS = SLURM

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.slurm = SlurmOverNodes(cls.cluster)
        cls.addClassCleanup(cls.slurm.stop)
        cls.reference = Training(cls.cluster, "alone", *STEPS)
        outcome = cls.reference.launch(cls.nodes[:1]).wait()
        assert cls.reference.exit_code(outcome) == 0, outcome.output

    def setUp(self):
        self.addCleanup(self.slurm.cancel_all)

    def submit(self, script, *words, options=(), **more):
        """The number of a job with one rank a node. more: variables of its environment."""
        variables = {"KZERO": str(KZERO), "KZERO_JOBSCRIPTS": f"{ROOT}/jobscripts", **rank_environment(), **more}
        return self.slurm(
            "sbatch",
            "--parsable",
            "--ntasks-per-node=1",
            "--cpus-per-task=1",
            "--time=10",
            *options,
            f"{ROOT}/jobscripts/{script}",
            *map(str, words),
            env=variables,
        )

    def wait_end(self, job, state, output):
        found = self.slurm.wait_state(job, *FINAL)
        self.assertEqual(found, state, output.read_text() if output.exists() else "no output")
        return self.slurm.facts(job)


class Requeue(SlurmTest):
    def test_a_job_that_stops_in_time_is_submitted_again_and_completes(self):
        training = Training(self.cluster, "requeued", *STEPS)
        job = self.submit("slurm_cpu.sh", training.deck, *training.overrides("run.max_steps=5"), options=["--nodes=4"])
        output = self.cluster.work / f"kzero-{job}.out"
        self.slurm.wait_restart(job, 1)
        self.assertEqual(training.verify().step, 5)
        self.slurm.start_now(job)
        facts = self.wait_end(job, "COMPLETED", output)
        self.assertEqual((facts["ExitCode"], facts["NumNodes"]), ("0:0", "4"))
        said = output.read_text()
        self.assertEqual(said.count(" on 4 nodes, first node1\n"), 2, said)
        self.assertIn(": exit code 75\n", said)
        self.assertEqual([record["hosts"] for record in training.records("start")], [self.names] * 2)
        self.assertEqual(training.verify(), self.reference.verify())


class Arrays(SlurmTest):
    def test_each_task_of_an_array_trains_on_its_nodes(self):
        settings = self.cluster.work / "seeds.txt"
        settings.write_text("train.seed=1\ntrain.seed=2\n")
        job = self.submit("slurm_array.sh", self.reference.deck, settings, *MODEL, *STEPS, options=["--nodes=2", "--array=1-2"])
        for task in (1, 2):
            self.wait_end(f"{job}_{task}", "COMPLETED", self.cluster.work / f"kzero-{job}_{task}.out")
        used = [self.slurm.facts(f"{job}_{task}")["NodeList"] for task in (1, 2)]
        self.assertEqual(sorted(used), ["node[1-2]", "node[3-4]"])
        results = [self.verify_folder(f"runs/seeds/{task}/checkpoints") for task in (1, 2)]
        self.assertEqual(results[0], self.reference.verify())
        self.assertNotEqual(results[0], results[1])

    def verify_folder(self, name):
        return read_checkpoint([KZERO, "inspect", "--verify", self.cluster.work / name], 120)


class Losses(SlurmTest):
    STEPS = ("train.steps=60", "checkpoint.every=4")

    def test_a_job_that_may_not_launch_again_is_submitted_again_and_continues_on_others(self):
        undisturbed = Training(self.cluster, "undisturbed", *self.STEPS)
        self.assertEqual(undisturbed.exit_code(undisturbed.launch(self.nodes[:1]).wait()), 0)

        training = Training(self.cluster, "lost", *self.STEPS)
        job = self.submit("slurm_cpu.sh", training.deck, *training.overrides(), options=["--nodes=3"], KZERO_MAX_RELAUNCH="0")
        wait_for("a checkpoint", lambda: training.records("checkpoint"))
        self.nodes[2].kill()
        self.addCleanup(self.nodes[2].boot)
        self.slurm.wait_restart(job, 1)
        saved = training.verify().step
        self.slurm.start_now(job)
        self.wait_end(job, "COMPLETED", self.cluster.work / f"kzero-{job}.out")
        first, second = training.records("start")
        self.assertEqual((first["hosts"], second["hosts"]), (["node1", "node2", "node3"], ["node1", "node2", "node4"]))
        self.assertGreaterEqual(second["first_step"], saved)
        self.assertEqual(training.verify(), undisturbed.verify())


if __name__ == "__main__":
    main()
