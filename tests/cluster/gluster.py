"""A GlusterFS volume over the nodes of a cluster, in mirrored pairs, mounted by FUSE on each node."""

import signal
import subprocess

from nodes.shell import ClusterError, wait_until

PATIENCE = 60
MOUNT = "/run/shared"  # a folder of the node's own


class Gluster:
    """Nodes 1 and 2, 3 and 4 and so on hold the same files. The daemons are processes of the nodes."""

    def __init__(self, cluster):
        self.cluster, self.folder, self.daemons = cluster, cluster.folder / "gluster", []
        for node in cluster.nodes:
            self.start_node(node)
        first, *others = cluster.nodes
        for node in cluster.nodes:
            wait_until(f"glusterd on {node}", lambda node=node: node.run(["gluster", "peer", "status"])[0] == 0, PATIENCE)
        for node in others:
            self.manage("peer", "probe", node.name)
        wait_until("peers", lambda: self.manage("peer", "status").count("(Connected)") == len(others), PATIENCE)
        bricks = [f"{node}:{self.folder}/brick-{node}" for node in cluster.nodes]
        self.manage("volume", "create", "shared", "replica", "2", *bricks, "force")
        self.manage("volume", "start", "shared")
        for node in cluster.nodes:
            self.on(node, "mkdir", "-p", MOUNT)
            self.on(node, "mount", "-t", "glusterfs", f"{node}:/shared", MOUNT)

    def on(self, node, *words):
        code, said = node.run(words)
        if code != 0:
            raise ClusterError(f"{node}: {' '.join(words)}: {said}")
        return said

    def manage(self, *words):
        return self.on(self.cluster.nodes[0], "gluster", "--mode=script", *words)

    def start_node(self, node):
        """Starts the node's glusterd, which starts the servers of its bricks."""
        for name in (f"brick-{node}", f"lib-{node}", f"log-{node}"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        bind = (
            f"mkdir -p /var/lib/glusterd /var/log/glusterfs /run/gluster && mount --bind {self.folder}/lib-{node} /var/lib/glusterd && "
            f"mount --bind {self.folder}/log-{node} /var/log/glusterfs && exec glusterd -p /run/glusterd.pid --no-daemon"
        )
        self.daemons.append(
            node.popen(
                ["sh", "-c", bind],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )

    def kill_server(self, node):
        """Kills the server of the node's brick."""
        if not node.send_signal("/usr/sbin/glusterfsd ", signal.SIGKILL):
            raise ClusterError(f"{node} has no server of a brick: {node.processes()}")

    def restore_servers(self):
        """Starts the servers that are gone and waits until each is there."""
        self.manage("volume", "start", "shared", "force")
        wait_until("the servers", lambda: all("glusterfsd" in str(node.processes()) for node in self.cluster.nodes), PATIENCE)

    def stop(self):
        """Collects the daemons of nodes that are down."""
        for daemon in self.daemons:
            daemon.wait()
