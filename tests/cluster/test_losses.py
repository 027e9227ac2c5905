"""A node or its link is lost: the launch ends, no process and no checkpoint is lost, and the nodes left continue bit for bit."""

import os
import signal
import time

from testing import ClusterTest, main
from training import KZERO, Training
from trials import EVERY, SETTINGS, run_trial, train_reference, wait_for_none


class LossTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.reference = train_reference(cls.cluster)

    def try_fault(self, name, fault, **options):
        result = run_trial(self.cluster, name, fault, reference=self.reference, **options)
        print(result.json(), flush=True)
        self.assertTrue(result.reached, "the launch ended before the fault")
        self.assertEqual(result.left, [], "processes were left")
        self.assertEqual(result.lost, "", "the newest checkpoint")
        self.assertTrue(result.same_bits)
        return result

    def check_loss(self, name, fault, **options):
        """The launch has to end by itself with an error, and the restart on the nodes left has to complete."""
        result = self.try_fault(name, fault, **options)
        self.assertNotIn(result.code, (None, 0, 75))
        self.assertEqual(result.again_code, 0)
        return result


class Kills(LossTest):
    """The node's kernel lives and closes its connections."""

    def test_a_node_killed_in_a_step(self):
        self.check_loss("in_a_step", "kill")

    def test_a_rank_killed_whose_node_shares_gathered_parameters(self):
        hosts = self.nodes[:2]
        training = Training(self.cluster, "sharing", *SETTINGS, "zero.stage=3")
        launch = training.launch(hosts, ranks=2)
        self.addCleanup(launch.kill)
        self.assertTrue(launch.wait_for(rf"^step +{EVERY + 2}/"))
        ranks = [pid for pid, words in hosts[1].processes() if words.startswith(str(KZERO))]
        self.assertEqual(len(ranks), 2)
        os.kill(ranks[1], signal.SIGKILL)
        outcome = launch.wait(60)
        self.assertNotIn(outcome.code, (None, 0, 75))
        self.assertEqual(wait_for_none(launch, 10, hosts[1]), [], "processes were left")
        again = training.launch(hosts, ranks=2).wait(120)
        self.assertEqual(training.exit_code(again), 0, again.output)
        self.assertEqual(training.verify(), self.reference)


class IdleConnections(ClusterTest):
    NODES = 3

    def test_they_survive_a_cut_link(self):
        """The kernel of a node with a stopped rank acknowledges all messages, so that nothing is on its way while the link is cut."""
        training = Training(self.cluster, "idle", *SETTINGS)
        launch = training.launch(self.nodes)
        self.addCleanup(launch.kill)
        self.assertTrue(launch.wait_for(r"^step +7/"))
        self.assertEqual(self.nodes[2].send_signal(str(KZERO), signal.SIGSTOP), 1)
        time.sleep(9)  # UCX asks an idle connection after 10 s, and gives it up after nine questions, one every 2 s
        self.nodes[1].cut_link()
        time.sleep(25)
        self.nodes[1].restore_link()
        self.nodes[2].send_signal(str(KZERO), signal.SIGCONT)
        self.assertEqual(launch.wait(60).code, 0)


class MoreKills(LossTest):
    NODES = 5  # the last is for mpiexec alone

    def test_a_node_killed_in_a_save(self):
        self.check_loss("in_a_save", "kill", moment="save", hosts=self.nodes[:4])

    def test_a_node_killed_at_the_start(self):
        self.check_loss("at_the_start", "kill", moment="start", hosts=self.nodes[:4])

    def test_the_node_of_rank_0_killed(self):
        self.check_loss("rank_0", "kill", victim=0, hosts=self.nodes[:4], head="node5")


class Silence(LossTest):
    """Nothing tells the other nodes of the loss; they have to notice that a node is silent."""

    NODES = 5
    HEARTBEAT = ("run.heartbeat=10s",)
    LIMIT = 60  # seconds until the launch has ended; without a heartbeat it would take run.watchdog, which is 30 minutes

    def check_silence(self, name, fault, **options):
        result = self.check_loss(name, fault, settings=self.HEARTBEAT, limit=self.LIMIT, hosts=self.nodes[:4], **options)
        self.assertTrue(result.named, "no message names the node")

    def test_a_node_loses_power(self):
        self.check_silence("power", "power")

    def test_the_node_of_rank_0_loses_power(self):
        self.check_silence("power_rank_0", "power", victim=0, head="node5")

    def test_a_link_is_cut_for_good(self):
        self.check_silence("cut", "cut", grace=30)

    def test_the_link_of_rank_0_is_cut_for_good(self):
        self.check_silence("cut_rank_0", "cut", victim=0, head="node5", grace=30)

    def test_a_link_that_comes_back_in_time_changes_nothing(self):
        result = self.try_fault("cut20", "cut20", settings=("run.heartbeat=60s",), hosts=self.nodes[:4])
        self.assertEqual(result.code, 0)


if __name__ == "__main__":
    main()
