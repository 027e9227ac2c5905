"""The cluster itself: what nodes have of their own, faults, and that nothing is left of it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from nodes import processes
from nodes.cluster import Cluster
from nodes.node import Node
from nodes.requirements import why_not
from nodes.shell import ClusterError, call, wait_until
from testing import ClusterTest, main

TOOL = Path(__file__).with_name("cluster.py")
PATIENCE = 30
LISTEN = (
    "import socket, sys; s = socket.create_server(('', 5000)); print('listening', flush=True); c = s.accept()[0]\n"
    "print('connected', flush=True)\n"
    "try: print('closed' if not c.recv(1) else 'data', flush=True)\n"
    "except ConnectionError: print('closed', flush=True)\n"
)
CONNECT = "import socket, time; s = socket.create_connection(('{}', 5000)); time.sleep(1000)"
RECEIVE = (
    "import socket; s = socket.create_server(('', 5001)); print('listening', flush=True); c = s.accept()[0]\n"
    "n = 0\nwhile data := c.recv(1 << 20): n += len(data)\nprint(n, flush=True)\n"
)
SEND = "import socket, sys; s = socket.create_connection(('{}', 5001)); s.sendall(bytes({})); s.close()"
COUNT_DATAGRAMS = (
    "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 5002)); s.settimeout(3)\n"
    "print('listening', flush=True)\nn = 0\ntry:\n  while True: s.recv(10); n += 1\nexcept TimeoutError: print(n, flush=True)\n"
)
SEND_DATAGRAMS = (
    "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "for i in range(400): s.sendto(b'x', ('{}', 5002)); time.sleep(0.001)\n"
)


class NodeTest(ClusterTest):
    def python(self, node, text):
        """Starts a Python program on a node."""
        process = node.popen([sys.executable, "-u", "-c", text], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(lambda: processes.kill_all(pid for pid, _ in node.processes()))
        return process

    def listening(self, node, text):
        process = self.python(node, text)
        self.assertEqual(process.stdout.readline(), "listening\n")
        return process

    def run_on(self, node, *words, code=0, **options):
        found, output = node.run(words, **options)
        self.assertEqual(found, code, output)
        return output.strip()

    def assert_reaches(self, node, other):
        """Soon: for a second after a link is back, a search for its address that began before may still fail."""
        command = [self.cluster.folder / "ssh", "-o", f"ConnectTimeout={PATIENCE}", other.name, "true"]
        wait_until(f"{node} to reach {other}", lambda: node.run(command)[0] == 0, PATIENCE)

    def assert_does_not_reach(self, node, other):
        self.run_on(node, self.cluster.folder / "ssh", "-o", "ConnectTimeout=2", other.name, "true", code=255)


class Nodes(NodeTest):
    NODES = 3

    def test_each_has_its_own_name_boot_and_folders_and_shares_work(self):
        boots = {self.run_on(node, "cat", "/proc/sys/kernel/random/boot_id") for node in self.nodes}
        self.assertEqual(len(boots), 3)
        self.assertEqual([self.run_on(node, "hostname") for node in self.nodes], self.names)
        for folder in ("/tmp", "/var/tmp", "/run", "/dev/shm"):
            self.run_on(self.nodes[0], "touch", f"{folder}/mine")
            self.run_on(self.nodes[1], "test", "!", "-e", f"{folder}/mine")
            self.assertFalse(Path(folder, "mine").exists())
        self.run_on(self.nodes[0], "touch", "ours")
        self.run_on(self.nodes[1], "test", "-e", "ours")
        self.assertTrue((self.cluster.work / "ours").exists())
        self.assertEqual(self.run_on(self.nodes[0], "sh", "-c", "ls /sys/class/net | grep -c eth"), "1")

    def test_programs_get_their_words_and_variables_and_return_their_code(self):
        self.assertEqual(self.run_on(self.nodes[0], "printf", "%s|", "a b", "$HOME", ""), "a b|$HOME||")
        self.assertEqual(self.run_on(self.nodes[0], "printenv", "WORD", environment={"WORD": "x y"}), "x y")
        self.run_on(self.nodes[0], "sh", "-c", "exit 7", code=7)
        with self.assertRaisesRegex(ClusterError, "still runs after 1 s"):
            self.nodes[0].run(["sh", "-c", "sleep 1000; true"], timeout=1)
        self.assertEqual(self.nodes[0].processes(), [])
        with self.assertRaisesRegex(ClusterError, "node4: not a node of the cluster in .*, which has 3"):
            self.cluster.node("node4")

    def test_mpiexec_reaches_every_node(self):
        shown = self.run_on(self.nodes[2], "mpiexec", "-hosts", ",".join(self.names), "-ppn", "2", "hostname")
        self.assertEqual(sorted(shown.split()), sorted(self.names * 2))

    def test_a_link_is_cut_and_restored(self):
        self.assert_reaches(self.nodes[0], self.nodes[1])
        self.nodes[1].cut_link()
        self.assert_does_not_reach(self.nodes[0], self.nodes[1])
        self.assert_does_not_reach(self.nodes[1], self.nodes[2])
        self.assert_reaches(self.nodes[0], self.nodes[2])
        self.nodes[1].restore_link()
        self.assert_reaches(self.nodes[0], self.nodes[1])

    def check_loss(self, lose):
        """Loses a node that has a connection and starts it again; returns the process at the connection's other end."""
        listener = self.listening(self.nodes[0], LISTEN)
        self.python(self.nodes[1], CONNECT.format(self.names[0]))
        self.assertEqual(listener.stdout.readline(), "connected\n")
        before = self.nodes[1].init()
        lose()
        self.assertIsNone(self.nodes[1].init())
        self.assertFalse(processes.command_line(before))
        with self.assertRaisesRegex(ClusterError, "node2 is down"):
            self.nodes[1].run(["true"])
        self.addCleanup(self.nodes[1].restore_link)
        time.sleep(1)
        return listener

    def test_a_killed_node_closes_its_connections(self):
        listener = self.check_loss(self.nodes[1].kill)
        self.assertEqual(listener.stdout.readline(), "closed\n")
        self.nodes[1].boot()
        self.assert_reaches(self.nodes[0], self.nodes[1])

    def test_nobody_hears_of_a_loss_of_power(self):
        listener = self.check_loss(self.nodes[1].power_off)
        self.assertIsNone(listener.poll())  # it would end with the connection
        self.nodes[1].boot()
        self.assert_reaches(self.nodes[0], self.nodes[1])
        with self.assertRaisesRegex(ClusterError, "node2 is up"):
            self.nodes[1].boot()


class Links(NodeTest):
    NODES = 2

    def send(self, size):
        """Sends bytes from node1 to node2 and returns the seconds."""
        receiver = self.listening(self.nodes[1], RECEIVE)
        begin = time.monotonic()
        self.run_on(self.nodes[0], sys.executable, "-c", SEND.format("node2", size))
        self.assertEqual(receiver.stdout.readline(), f"{size}\n")
        return time.monotonic() - begin

    def test_interfaces_count_bytes(self):
        before, size = self.cluster.traffic(), 20_000_000
        self.send(size)
        after = self.cluster.traffic()
        sent = after["node1"].sent_bytes - before["node1"].sent_bytes
        self.assertAlmostEqual(sent, after["node2"].received_bytes - before["node2"].received_bytes, delta=1000)  # ARP
        self.assertTrue(size < sent < 1.02 * size, sent)
        self.assertLess(after["node2"].sent_bytes - before["node2"].sent_bytes, size / 50)

    def test_a_rate_holds_in_both_directions_until_it_is_removed(self):
        size, rate = 5_000_000, 20e6
        for limited in self.nodes:
            limited.set_link(rate="20mbit")
            self.assertGreater(self.send(size), 0.9 * (size - 256e3) * 8 / rate)  # a burst of 256 kB passes at once
            limited.set_link()
            self.assertEqual(
                call("tc", "-n", self.cluster.network.namespace(limited.name), "qdisc", "show", "dev", "eth0").split()[1],
                "noqueue",
            )

    def datagrams(self):
        receiver = self.listening(self.nodes[1], COUNT_DATAGRAMS)
        self.run_on(self.nodes[0], sys.executable, "-c", SEND_DATAGRAMS.format("10.77.0.2"))
        return int(receiver.stdout.readline())

    def test_a_share_of_packets_is_lost(self):
        self.nodes[1].set_link(loss="50%")
        self.assertTrue(100 < self.datagrams() < 300)  # 10 standard deviations of 400 throws of a coin
        self.nodes[1].set_link()
        self.assertEqual(self.datagrams(), 400)
        with self.assertRaisesRegex(ClusterError, "expected a percentage"):
            self.nodes[1].set_link(loss="half")


class Delays(NodeTest):
    NODES = 2

    def test_a_delay_holds(self):
        try:
            self.nodes[1].set_link(delay="100ms")
        except ClusterError as problem:
            self.assertIn("sch_netem", str(problem))
            self.skipTest(str(problem))
        begin = time.monotonic()
        self.assert_reaches(self.nodes[0], self.nodes[1])
        self.assertGreater(time.monotonic() - begin, 0.4)  # several round trips of 0.2 s


class Shares(NodeTest):
    """Limits by control groups."""

    NODES = 2
    MEMORY = 200 << 20

    def setUp(self):
        for controller in ("cpu", "memory", "freezer"):
            if reason := self.cluster.groups.why_not("node1", controller):
                self.skipTest(reason)

    def spin(self):
        """The processor time in seconds that one process gets on node1 in two seconds."""
        return float(
            self.run_on(
                self.nodes[0],
                sys.executable,
                "-c",
                "import time; end = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nprint(time.process_time())",
            )
        )

    def test_a_slow_node_gets_its_share_of_a_core(self):
        self.nodes[0].slow(0.1)
        self.assertLess(self.spin(), 0.4)
        self.nodes[0].slow(None)
        self.assertGreater(self.spin(), 0.4)

    def test_a_frozen_node_stands_still_until_it_thaws(self):
        ticks = self.cluster.work / "ticks"
        self.python(self.nodes[0], "import time\nwhile True: print('x', file=open('ticks', 'a')); time.sleep(0.01)")
        self.addCleanup(self.nodes[0].thaw)
        wait_until("ticks", ticks.exists, PATIENCE)
        self.nodes[0].freeze()
        time.sleep(0.5)
        size = ticks.stat().st_size
        time.sleep(1)
        self.assertEqual(ticks.stat().st_size, size)
        self.nodes[0].thaw()
        wait_until("further ticks", lambda: ticks.stat().st_size > size, PATIENCE)

    def test_a_frozen_node_can_be_killed(self):
        self.nodes[1].freeze()
        self.nodes[1].kill()
        self.nodes[1].boot()
        self.run_on(self.nodes[1], "true")

    def test_a_node_cannot_use_more_than_its_memory(self):
        use = "import sys; b = bytearray(int(sys.argv[1])); print('used')"
        self.nodes[0].limit_memory(self.MEMORY)
        self.addCleanup(self.nodes[0].limit_memory, None)
        self.assertEqual(self.run_on(self.nodes[0], sys.executable, "-c", use, self.MEMORY // 4), "used")
        self.run_on(self.nodes[0], sys.executable, "-c", use, self.MEMORY * 2, code=-signal.SIGKILL)
        self.assertEqual(self.run_on(self.nodes[1], sys.executable, "-c", use, self.MEMORY * 2), "used")


class Traces(unittest.TestCase):
    """Clusters that coexist, and what is left of one."""

    def setUp(self):
        if reason := why_not():
            self.skipTest(reason)

    def new_cluster(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="kzero_cluster_")))
        self.addCleanup(lambda: Cluster(folder).down())
        return Cluster(folder)

    def traces(self, cluster):
        """All that exists of the cluster: namespaces, groups, processes, mounts."""
        found = cluster.network.spaces()
        found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{cluster.group_name}")]
        found += [
            line
            for pid in processes.all_pids()
            if str(cluster.folder) in (line := " ".join(processes.command_line(pid))) and pid != os.getpid()
        ]
        found += [
            line
            for line in Path("/proc/self/mountinfo").read_text().splitlines()
            if str(cluster.folder) in line or cluster.network.prefix in line
        ]
        return found

    def tool(self, cluster, *words):
        return subprocess.run(
            [sys.executable, "-B", TOOL, "--folder", cluster.folder, *words], capture_output=True, text=True, timeout=60
        )

    def reach(self, cluster, seconds):
        """The exit code of ssh from node1 to node2."""
        return self.tool(
            cluster, "run", "1", cluster.folder / "ssh", "-o", f"ConnectTimeout={seconds}", "node2", "true"
        ).returncode

    def test_two_clusters_do_not_meet(self):
        first, second = self.new_cluster(), self.new_cluster()
        first.up(1)
        second.up(2)
        self.assertEqual(first.nodes[0].run(["hostname"]), (0, "node1\n"))
        self.assertNotEqual(first.nodes[0].run([first.folder / "ssh", "-o", "ConnectTimeout=2", "10.77.0.2", "true"])[0], 0)
        first.down()
        self.assertEqual(self.traces(first), [])
        self.assertEqual(second.nodes[0].run([second.folder / "ssh", "node2", "hostname"]), (0, "node2\n"))

    def test_nothing_is_left_of_a_cluster_with_running_programs_and_lost_nodes(self):
        cluster = self.new_cluster()
        cluster.up(4)
        self.assertTrue(self.traces(cluster))
        with self.assertRaisesRegex(ClusterError, "there is a cluster in"):
            Cluster(cluster.folder).up(1)
        for node, act in zip(cluster.nodes, ("kill", "power_off", "cut_link", "set_link"), strict=True):
            process = node.popen(
                ["sh", "-c", "trap '' TERM INT; setsid sleep 1000 & sleep 1000", str(cluster.folder)], stdin=subprocess.DEVNULL
            )
            self.addCleanup(process.wait)
            getattr(node, act)()
        cluster.nodes[3].set_link(rate="1mbit", loss="10%")
        cluster.down()
        self.assertEqual(self.traces(cluster), [])
        self.assertEqual(os.listdir(cluster.folder), ["work"])

    def test_nothing_is_left_where_up_is_killed(self):
        for seconds in (0.3, 0.6, 1.2):
            with self.subTest(seconds):
                cluster = self.new_cluster()
                up = subprocess.Popen([sys.executable, "-B", TOOL, "--folder", cluster.folder, "up", "3"])
                time.sleep(seconds)
                up.kill()
                up.wait()
                time.sleep(0.3)  # its last command ends without it
                self.assertEqual(self.tool(cluster, "down").returncode, 0)
                self.assertEqual(self.traces(cluster), [])

    def test_a_temporary_cluster_does_not_outlive_its_program_for_long(self):
        program = "from nodes.cluster import Cluster; import time\nwith Cluster.temporary(1) as c: print(c.folder, flush=True); time.sleep(1000)"
        owner = subprocess.Popen([sys.executable, "-B", "-c", program], cwd=TOOL.parent, stdout=subprocess.PIPE, text=True)
        abandoned = Cluster(owner.stdout.readline().strip())
        owner.kill()
        owner.communicate()
        self.assertTrue(self.traces(abandoned))
        with Cluster.temporary(1) as other:
            self.assertEqual(self.traces(abandoned), [])
            self.assertFalse(abandoned.folder.exists())
            with Cluster.temporary(1):  # one whose owner lives stays
                self.assertEqual(other.nodes[0].run(["hostname"]), (0, "node1\n"))

    def test_an_up_that_fails_leaves_nothing(self):
        cluster = self.new_cluster()
        boot = Node.boot

        def fail_second(node):
            if node.number == 2:
                raise ClusterError("does not start")
            boot(node)

        with mock.patch.object(Node, "boot", fail_second), self.assertRaisesRegex(ClusterError, "does not start"):
            cluster.up(2)
        self.assertEqual(self.traces(cluster), [])
        for settings, problem in (
            ({"count": 0}, "expected 1 to 200"),
            ({"count": 1, "keep": ["/tmp/no such"]}, "/tmp/no such: does not exist"),
        ):
            with self.assertRaisesRegex(ClusterError, problem):
                cluster.up(**settings)

    def test_the_tool_does_what_its_words_say(self):
        cluster = self.new_cluster()
        self.assertEqual(self.tool(cluster, "bytes").stderr, f"cluster.py: there is no cluster in {cluster.folder}\n")
        self.assertEqual(self.tool(cluster, "up", "2").stderr, "")
        done = self.tool(cluster, "run", "node2", "sh", "-c", "hostname; exit 9")
        self.assertEqual((done.stdout, done.returncode), ("node2\n", 9))
        self.assertIn('"node2": {"sent_bytes"', self.tool(cluster, "bytes").stdout)
        for word, reached in (
            ("cut", False),
            ("restore", True),
            ("kill", False),
            ("boot", True),
            ("power-off", False),
            ("boot", True),
        ):
            self.assertEqual(self.tool(cluster, word, "node2").stderr, "")
            if reached:
                wait_until(f"a connection after {word}", lambda: self.reach(cluster, PATIENCE) == 0, PATIENCE)
            else:
                self.assertEqual(self.reach(cluster, 2), 255, word)
        self.assertEqual(self.tool(cluster, "link", "--rate", "1gbit", "--loss", "0.1%").stderr, "")
        self.assertEqual(self.tool(cluster, "processes").stdout, "")
        self.assertEqual(self.tool(cluster, "down").stderr, "")
        self.assertEqual(self.traces(cluster), [])


if __name__ == "__main__":
    main()
