"""The heartbeat's datagrams leave a node only for an address that no other node has, and nobody else can make one."""

import sys

from nodes.launch import Launch
from nodes.shell import call, wait_until
from testing import ClusterTest, main
from training import Training, rank_environment

BRIDGE = "172.17.0.1"  # of containers; every node has it
LISTENING = 8  # seconds; a sign of life comes every 0.4 s

# Listens where the other node's rank does, but on this node's bridge, as any of its users can. Prints what it hears. Sends it to the
# rank on this node: as it came, and as an alarm that begins with the same bytes. Sends noise, too.
LISTENER = """
import os, socket, struct, sys, time
theirs, ours, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
listener.bind(("{bridge}", theirs))
end = time.monotonic() + seconds
while time.monotonic() < end:
    listener.settimeout(0.5)
    try:
        heard = listener.recv(1000)
        print(heard.hex(), flush=True)
    except TimeoutError:
        heard = os.urandom(8)
    for forged in (heard, heard[:8] + struct.pack("=II", 2, 1), heard[:8] + struct.pack("=IIIIQ", 2, 1, 0, 0, 0), os.urandom(32)):
        listener.sendto(forged, ("127.0.0.1", ours))
"""


class Datagrams(ClusterTest):
    NODES = 2

    def inside(self, node, *command):
        return call(*self.cluster.network.inside(node.name), *command)

    def port(self, node):
        """The port of the only socket for datagrams on the node; None if there is none yet."""
        rows = [line.split() for line in self.inside(node, "cat", "/proc/net/udp6").splitlines()[1:]]
        return int(rows[0][1].rpartition(":")[2], 16) if rows else None

    def test_a_user_of_a_node_learns_nothing_and_ends_no_run(self):
        for node in self.nodes:
            self.inside(node, "ip", "link", "add", "docker0", "type", "bridge")
            self.inside(node, "ip", "addr", "add", f"{BRIDGE}/16", "dev", "docker0")
            self.inside(node, "ip", "link", "set", "docker0", "up")
        training = Training(self.cluster, "forged", "train.global_batch=4", "train.steps=100000", "run.heartbeat=6s")
        only_eth0 = {"UCX_NET_DEVICES": "eth0"}  # MPI would try the bridges
        launch = Launch(self.cluster, training.command(), self.nodes, environment={**rank_environment(), **only_eth0})
        self.addCleanup(launch.kill)
        self.assertTrue(launch.wait_for(r"^step +3/"), launch.output())
        first, second = (wait_until("a socket", lambda node=node: self.port(node), 20) for node in self.nodes)
        listener = LISTENER.format(bridge=BRIDGE)
        heard = self.inside(self.nodes[0], sys.executable, "-c", listener, second, first, LISTENING)
        self.assertEqual(heard, "")
        self.assertTrue(launch.is_running(), launch.output())
        self.assertNotIn("no sign of life", launch.output())
        self.nodes[1].power_off()  # and its loss is still noticed
        self.assertEqual(launch.wait(60).code, 1, launch.output())
        self.assertIn("node node2 (rank 1) has not been heard for", launch.output())


if __name__ == "__main__":
    main()
