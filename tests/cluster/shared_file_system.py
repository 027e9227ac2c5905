#!/usr/bin/env python3
"""Checkpoints on a GlusterFS volume over the nodes: tests to run by hand. They need glusterfs-server and glusterfs-client.

Usage:

    KZERO=build/release/kzero python3 tests/cluster/shared_file_system.py
"""

import re
from pathlib import Path

from gluster import MOUNT, Gluster
from nodes.requirements import GLUSTER
from nodes.shell import wait_until
from testing import ClusterTest, main
from training import KZERO, Training, read_checkpoint

SETTINGS = ("train.global_batch=4", "checkpoint.every=5", "run.watchdog=60s")
PATIENCE = 180


class SharedTraining(Training):
    """One whose checkpoints and metrics are on the volume, which only nodes see."""

    def __init__(self, cluster, name, *settings):
        super().__init__(cluster, name, *SETTINGS, *settings)
        self.shared = Path(MOUNT) / name
        self.settings += [f"checkpoint.folder={self.shared}", f"run.metrics={self.shared}/metrics.jsonl"]

    def verify_on(self, node):
        return read_checkpoint(node.command([KZERO, "inspect", "--verify", self.shared]), PATIENCE)


class Volume(ClusterTest):
    PROGRAMS = GLUSTER

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.gluster = Gluster(cls.cluster)
        cls.addClassCleanup(cls.gluster.stop)
        cls.addClassCleanup(lambda: [node.kill() for node in cls.nodes])

    def check_end(self, training, launch, code):
        outcome = launch.wait(PATIENCE)
        self.assertEqual(training.exit_code(outcome), code, outcome.output)
        return outcome.output

    def same_alone(self, *settings):
        """The result of the same training on one node without the volume."""
        alone = Training(self.cluster, f"alone-{self.id().rpartition('.')[2]}", *SETTINGS, *settings)
        self.check_end(alone, alone.launch(self.nodes[:1]), 0)
        return alone.verify()

    def test_a_restart_from_another_node_changes_no_bit(self):
        training = SharedTraining(self.cluster, "restart", "train.steps=20")
        self.check_end(training, training.launch(self.nodes, "run.max_steps=10"), 75)
        self.assertEqual(training.verify_on(self.nodes[3]).step, 10)
        self.check_end(training, training.launch(self.nodes[::-1]), 0)
        self.assertEqual(training.verify_on(self.nodes[1]), self.same_alone("train.steps=20"))

    def test_a_second_job_in_the_same_folder_is_refused_and_told_who_has_it(self):
        training = SharedTraining(self.cluster, "busy", "train.steps=100000")
        first = training.launch(self.nodes[:2])
        self.addCleanup(first.kill)
        self.assertTrue(first.wait_for(r"^step +5/"), first.output())
        second = training.launch(self.nodes[2:])
        self.addCleanup(second.kill)
        outcome = second.wait(PATIENCE)
        self.assertEqual(outcome.code, 4, outcome.output)
        self.assertRegex(outcome.output, r"another run writes into this folder|in use by .* on node1")
        self.assertTrue(first.is_running())

    def test_of_two_jobs_at_the_same_moment_one_trains(self):
        training = SharedTraining(self.cluster, "both", "train.steps=20")
        first, second = training.launch(self.nodes[:2]), training.launch(self.nodes[2:])
        self.addCleanup(first.kill)
        self.addCleanup(second.kill)
        outcomes = [launch.wait(PATIENCE) for launch in (first, second)]
        said = "\n".join(outcome.output for outcome in outcomes)
        self.assertEqual(len(re.findall(r"^step +1/20 ", said, re.M)), 1, said)
        self.assertEqual(training.verify_on(self.nodes[0]), self.same_alone("train.steps=20"))

    def test_one_server_of_a_pair_can_be_lost(self):
        training = SharedTraining(self.cluster, "server", "train.steps=40")
        launch = training.launch(self.nodes)
        self.assertTrue(launch.wait_for(r"^step +10/"), launch.output())
        self.gluster.kill_server(self.nodes[2])
        self.addCleanup(self.gluster.restore_servers)
        self.check_end(training, launch, 0)
        self.assertEqual(training.verify_on(self.nodes[0]), self.same_alone("train.steps=40"))

    def test_without_both_servers_of_a_pair_a_run_ends_and_continues_once_they_are_back(self):
        training = SharedTraining(self.cluster, "pair", "train.steps=40")
        launch = training.launch(self.nodes)
        self.assertTrue(launch.wait_for(r"^step +10/"), launch.output())
        for node in self.nodes[2:]:
            self.gluster.kill_server(node)
        output = self.check_end(training, launch, 4)
        self.assertIn("Transport endpoint is not connected", output)
        self.gluster.restore_servers()
        wait_until("the volume", lambda: self.nodes[0].run(["ls", str(training.shared)])[0] == 0, PATIENCE)
        self.check_end(training, training.launch(self.nodes), 0)
        self.assertEqual(training.verify_on(self.nodes[0]), self.same_alone("train.steps=40"))


if __name__ == "__main__":
    main()
