"""A cluster: the folder that holds its state and what its nodes share, its network, its control groups and its nodes."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from . import processes
from .access import write_access
from .groups import Groups, choose_parents
from .network import Network, address
from .node import Node
from .shell import ClusterError

MAX_NODES = 200
TEMPORARY = "kzero_cluster_"  # begins the names of folders of temporary clusters
MARKER = "CLUSTER_LAUNCH"  # the variable by which processes of a launch are found


@contextlib.contextmanager
def alone_with(folder):
    """Waits until no other program is here for the same folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class Cluster:
    """All names derive from the folder, so that what a crash left behind is found again.

    folder: made by up(). Nodes see it under the same name and share folder/work.
    """

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        tag = hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]
        self.work = self.folder / "work"
        self.network = Network(tag)
        self.group_name = f"kzero-{tag}"
        self._read_state()

    @classmethod
    @contextlib.contextmanager
    def temporary(cls, count, **settings):
        """A cluster in a temporary folder, both of which are gone afterwards. Those of programs that were killed are removed."""
        with alone_with(tempfile.gettempdir()):
            for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
                cls(folder).remove_if_abandoned()
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))
        cluster = cls(folder)
        try:
            cluster.up(count, owner=os.getpid(), **settings)
            yield cluster
        finally:
            cluster.down()
            shutil.rmtree(folder, ignore_errors=True)

    def _read_state(self):
        try:
            state = json.loads((self.folder / "cluster.json").read_text())
        except FileNotFoundError:
            state = {"nodes": 0, "groups": {}, "owner": None}
        self.groups = Groups(self.group_name, state["groups"])
        self.nodes = [Node(self, number) for number in range(1, state["nodes"] + 1)]
        self.owner = state["owner"]

    def node(self, name):
        """A node by its number or name."""
        for node in self.nodes:
            if str(name) in (node.name, str(node.number)):
                return node
        raise ClusterError(f"{name}: not a node of the cluster in {self.folder}, which has {len(self.nodes)}")

    def up(self, count, memory=None, keep=(), owner=None):
        """Starts so many nodes. memory: limit of each in bytes. keep: folders below /tmp and the like that nodes must see.
        owner: number of the process without which the cluster is abandoned; None: it may be left alone."""
        if not 1 <= count <= MAX_NODES:
            raise ClusterError(f"{count} nodes: expected 1 to {MAX_NODES}")
        if (self.folder / "cluster.json").exists() or self.network.spaces():
            raise ClusterError(f"there is a cluster in {self.folder}")
        for path in keep:
            if not Path(path).exists():
                raise ClusterError(f"{path}: does not exist, so nodes cannot see it")
        self.work.mkdir(parents=True, exist_ok=True)
        state = {
            "nodes": count,
            "keep": [str(Path(path).resolve()) for path in keep],
            "groups": choose_parents(),
            "owner": owner and [owner, processes.start_time(owner)],
        }
        (self.folder / "cluster.json").write_text(json.dumps(state))
        self._read_state()
        try:
            self._start(memory)
        except BaseException:
            self.down()
            raise

    def _start(self, memory):
        names = [node.name for node in self.nodes]
        lines = ["127.0.0.1 localhost", *(f"{address(node.number)} {node.name}" for node in self.nodes)]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")
        write_access(self.folder, names, MARKER)
        self.groups.create(names)
        self.network.create(names)
        for node in self.nodes:
            if memory is not None:
                node.limit_memory(memory)
            node.boot()

    def down(self):
        """Ends everything, also after an up() that did not finish. work/ stays."""
        for node in self.nodes:
            node.kill()
            node.log.unlink(missing_ok=True)
        self.network.remove()
        self.groups.remove()
        for name in (
            "keys",
            "ssh",
            "ssh_config",
            "sshd_config",
            "hosts",
            "cluster.json",
        ):  # the last tells that there is a cluster
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def remove_if_abandoned(self):
        """Removes the cluster and its folder if the process that owned it has ended."""
        if self.owner and processes.start_time(self.owner[0]) != self.owner[1]:
            self.down()
            shutil.rmtree(self.folder, ignore_errors=True)

    def traffic(self):
        """{node's name: Traffic}"""
        return {node.name: node.traffic() for node in self.nodes}

    def processes(self):
        """{node's name: [(number, command line)]} of the nodes on which something runs."""
        found = {node.name: node.processes() for node in self.nodes}
        return {name: running for name, running in found.items() if running}

    def marked(self, value):
        """Processes that began with MARKER=value, on any node and outside of them."""
        setting = f"{MARKER}={value}"
        return [pid for pid in processes.all_pids() if processes.has_variable(pid, setting)]
