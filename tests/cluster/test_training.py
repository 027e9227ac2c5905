"""A training over nodes: the same bits as on one node, stops and restarts on fewer nodes, and launches that end."""

import json

from nodes.launch import Launch
from testing import ClusterTest, main
from training import KZERO, ROOT, Training, rank_environment

STEPS = ("train.steps=8", "checkpoint.every=4")


class Restarts(ClusterTest):
    def test_a_stop_and_a_restart_on_fewer_nodes_change_no_bit(self):
        alone = Training(self.cluster, "alone", *STEPS)
        outcome = alone.launch(self.names[:1]).wait()
        self.assertEqual(alone.exit_code(outcome), 0, outcome.output)

        over = Training(self.cluster, "over", *STEPS)
        first = over.launch(self.names, "run.max_steps=5").wait()
        self.assertEqual(over.exit_code(first), 75, first.output)
        self.assertRegex(first.output, r"(?m)^grid +4 data x 1 tensor ranks, 1 threads each, on 4 nodes, first node1$")
        self.assertEqual(over.verify().step, 5)
        second = over.launch(self.names[:3], head="node3").wait()
        self.assertEqual(over.exit_code(second), 0, second.output)
        self.assertRegex(second.output, r"(?m)^grid +3 data x 1 tensor ranks, 1 threads each, on 3 nodes, first node1$")

        self.assertEqual([record["hosts"] for record in over.records("start")], [self.names, self.names[:3]])
        self.assertEqual(
            [record["loss"] for record in over.records("step")], [record["loss"] for record in alone.records("step")]
        )
        self.assertEqual(over.verify(), alone.verify())
        self.assertEqual(alone.verify().step, 8)


class Evaluations(ClusterTest):
    def scores(self, training, hosts, *options, ranks):
        command = [KZERO, "evaluate", training.saved, ROOT / "docs/glossary.md", "--json", *options]
        outcome = Launch(self.cluster, command, hosts, ranks=ranks, environment=rank_environment()).wait(60)
        self.assertEqual(outcome.code, 0, outcome.output)
        return [{**result, "seconds": 0} for result in json.loads(outcome.output)["results"]]

    def test_partitioned_parameters_give_the_same_bits_on_two_nodes(self):
        training = Training(self.cluster, "trained", "train.steps=2")
        outcome = training.launch(self.names[:1]).wait()
        self.assertEqual(training.exit_code(outcome), 0, outcome.output)
        self.assertEqual(
            self.scores(training, self.names[:2], "--partition", ranks=2), self.scores(training, self.names[:1], ranks=1)
        )


class Endings(ClusterTest):
    LAUNCHES = 4  # of each kind; more than half of such launches hung where nothing bounded MPI_Finalize

    def check(self, name, code, *settings):
        for number in range(self.LAUNCHES):
            training = Training(self.cluster, f"{name}{number}", "train.steps=2", "checkpoint.every=0", *settings)
            launch = training.launch(self.names)
            outcome = launch.wait()
            with self.subTest(launch=number):
                self.assertFalse(outcome.hung, f"it did not end after:\n{outcome.output}")
                self.assertEqual(outcome.code, code, outcome.output)
                self.assertEqual(launch.processes(), [])

    def test_a_completed_launch_ends(self):
        self.check("completed", 0)

    def test_a_stopped_launch_ends_with_75(self):
        self.check("stopped", 75, "run.max_steps=1")


if __name__ == "__main__":
    main()
