"""One node of a cluster: boot and loss, its link, its share of the machine, and the processes that run on it."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from . import processes
from .shell import ClusterError, wait_until

INIT = Path(__file__).with_name("init.py")
PATIENCE = 20  # seconds for what takes a moment on an idle machine
SSHD = ("/usr/sbin/sshd", "sshd: /usr/sbin/sshd")  # a node's own, before and after it has named itself
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Node:
    """Nodes are made by Cluster."""

    def __init__(self, cluster, number):
        self.cluster, self.number, self.name = cluster, number, f"node{number}"
        self.log = cluster.folder / f"{self.name}.log"
        self.marker = [str(cluster.folder), self.name]  # follows init.py in the command lines that make up a node
        self._init, self._started = None, None

    def __str__(self):
        return self.name

    # Boot and loss

    def boot(self):
        """Starts the node and connects its link. Returns when its sshd listens."""
        if self.init():
            raise ClusterError(f"{self.name} is up")
        self.cluster.network.set_link(self.name, "up")
        reader, writer = os.pipe()
        command = [
            *self.cluster.network.inside(self.name),
            "unshare",
            "--mount",
            "--uts",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
            sys.executable,
            "-B",
            str(INIT),
            *self.marker,
            str(writer),
        ]
        with self.log.open("w") as log:
            self._started = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                pass_fds=[writer],
                start_new_session=True,
                preexec_fn=self._enter_groups,
            )
        os.close(writer)
        ready = select.select([reader], [], [], PATIENCE)[0] and os.read(reader, 16)
        os.close(reader)
        if not ready:
            self.kill()
            raise ClusterError(f"{self.name} did not boot: {self.log.read_text().strip() or 'no answer'}")

    def init(self):
        """The process that is 1 on the node, as this machine numbers it; None if the node is down."""
        if self._init is None or not self._is_init(self._init):
            self._init = next(filter(self._is_init, processes.all_pids()), None)
        return self._init

    def _is_init(self, pid):
        return self._is_marked(processes.command_line(pid)[2:])

    def _is_marked(self, words):
        """Whether these are init.py, of any checkout, with this node's arguments."""
        return words[1:3] == self.marker and Path(words[0]).name == INIT.name

    def kill(self):
        """Ends all processes of the node at once. Its kernel lives: it closes their connections, which others notice."""
        if not self.cluster.groups.why_not(self.name, "freezer"):
            self.cluster.groups.freeze(self.name, False)  # what is frozen does not end
        init = self.init()
        space = init and processes.pid_namespace(init)
        # The kernel ends the other processes of init's namespace. Without an init there may be those that were about to start it.
        processes.kill_all([pid for pid in processes.all_pids() if self._is_marked(processes.command_line(pid)[-4:])])
        wait_until(f"the end of {self.name}", lambda: not self._left(space), PATIENCE)
        if self._started:
            self._started.wait()
        self._init, self._started = None, None

    def _left(self, space):
        return self.init() or (space and any(processes.pid_namespace(pid) == space for pid in processes.all_pids()))

    def power_off(self):
        """Takes the link away, then ends all processes, so that nobody hears of it."""
        self.cut_link()
        self.kill()

    # Link

    def cut_link(self):
        self.cluster.network.set_link(self.name, "down")

    def restore_link(self):
        self.cluster.network.set_link(self.name, "up")

    def set_link(self, rate=None, delay=None, loss=None):
        """See Network.shape."""
        self.cluster.network.shape(self.name, rate, delay, loss)

    def traffic(self):
        return self.cluster.network.traffic(self.name)

    # Share of the machine

    def slow(self, cpus):
        """Gives the node the time of so many cores, such as 0.1; None: no limit."""
        self.cluster.groups.limit_cpu(self.name, cpus)

    def limit_memory(self, size):
        """size: bytes; None: no limit."""
        self.cluster.groups.limit_memory(self.name, size)

    def freeze(self):
        """Stops all processes without ending them. Its connections stay."""
        self.cluster.groups.freeze(self.name, True)

    def thaw(self):
        self.cluster.groups.freeze(self.name, False)

    # Programs

    def command(self, words):
        """The command line that runs a program on the node, in the folder that all nodes share."""
        init = self.init()
        if not init:
            raise ClusterError(f"{self.name} is down")
        return [
            "nsenter",
            "--target",
            str(init),
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--root",
            "env",
            f"--chdir={self.cluster.work}",
            *map(str, words),
        ]

    def popen(self, words, environment=None, **settings):
        """Starts a program on the node. environment: variables in addition to PATH and the like; nothing else is passed on."""
        variables = {
            "PATH": PATH,
            "HOME": os.environ.get("HOME", "/root"),
            "LANG": "C.UTF-8",
            "HYDRA_LAUNCHER_EXEC": str(self.cluster.folder / "ssh"),
            **(environment or {}),
        }
        return subprocess.Popen(self.command(words), env=variables, preexec_fn=self._enter_groups, **settings)

    def run(self, words, environment=None, timeout=60):
        """Runs a program and returns (exit code, output). Raises ClusterError at the time limit."""
        process = self.popen(
            words,
            environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise ClusterError(f"{self.name}: {' '.join(map(str, words))}: still runs after {timeout} s") from None
        return process.returncode, output

    def _enter_groups(self):
        self.cluster.groups.enter(self.name)

    def processes(self):
        """[(number on this machine, command line)] of what runs on the node, except its own init and sshd."""
        init = self.init()
        space = init and processes.pid_namespace(init)
        found = []
        for pid in processes.all_pids() if init else []:
            words = processes.command_line(pid)  # none: it has ended and waits to be collected
            own = pid == init or (words and words[0].startswith(SSHD) and processes.parent(pid) == init)
            if words and not own and processes.pid_namespace(pid) == space:
                found.append((pid, " ".join(words)))
        return found

    def send_signal(self, pattern, number=signal.SIGKILL):
        """Sends a signal to the processes whose command line begins with the text. Returns how many there were."""
        pids = [pid for pid, command in self.processes() if command.startswith(pattern)]
        for pid in pids:
            os.kill(pid, number)
        return len(pids)
