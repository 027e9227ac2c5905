"""A Slurm whose nodes n1, n2, ... are one machine, for tests of nodes that fail. Programs see one host; Slurm sees several."""

import contextlib
import os
import signal
from pathlib import Path

from one_node_slurm import OneNodeSlurm


class SeveralNodesSlurm(OneNodeSlurm):
    slurmd_timeout = 15

    def __init__(self, cpus, nodes):
        self.count = nodes
        super().__init__(cpus)

    def node_names(self):
        return [f"n{i + 1}" for i in range(self.count)]

    def tasks(self, name):
        """{number: number of the parent} of the processes that Slurm has started on the node."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError, IndexError):
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                variables = (process / "environ").read_bytes().split(b"\0")
                if {f"SLURMD_NODENAME={name}".encode(), f"SLURM_CONF={self.folder}/slurm.conf".encode()} <= set(variables):
                    found[int(process.name)] = parent
        return found

    def runs(self, name, script):
        """Whether a script runs on the node."""
        words = []
        for pid in self.tasks(name):
            with contextlib.suppress(OSError):
                words += Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return any(word.endswith(script) for word in words)

    def kill_node(self, name):
        """Everything that Slurm has started on the node ends in silence; Slurm notices after SlurmdTimeout."""
        self.daemons[name].kill()
        self.daemons[name].wait()
        parents = self.tasks(name)
        daemons = set(parents.values()) - set(parents) - {1}  # slurmstepd, which would report how its tasks ended

        def depth(pid):
            return 1 + depth(parents[pid]) if pid in parents else 0

        # All at once, else the end of srun is reported by its child: they are stopped, and children are killed before their
        # parents, as the kernel wakes those whose parents are gone.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in sorted((*daemons, *parents), key=depth, reverse=True):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

    def lose_node(self, name):
        """As kill_node, and Slurm is told."""
        self.kill_node(name)
        self("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=test")

    def restore(self):
        """All nodes as at the start, for the next test."""
        for name in self.names:
            if self.daemons[name].poll() is not None:
                self.start_node(name)
        self._wait("idle nodes", lambda: self("sinfo", "-h", "-o", "%T", check=False) == "idle")
