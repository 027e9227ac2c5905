"""A launch of an MPI program over nodes by mpiexec and ssh. Its output is followed as it comes."""

import itertools
import os
import re
import subprocess
import time
from dataclasses import dataclass

from . import launchers, processes
from .cluster import MARKER

LAST_WORD = r"^(completed after|stopped (by|ahead|at|after)) "  # of kzero to standard output, on its way out
PATIENCE = 45  # seconds from the last word to the end of a launch that does not hang; a rank leaves MPI_Finalize after 30
numbers = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    """How a launch ended."""

    code: int | None  # of mpiexec; None: it was ended from here
    hung: bool  # it did not end within PATIENCE of the program's last word
    seconds: float
    output: str


class Launch:
    """Starts at once. hosts: nodes that run ranks; head: the node that mpiexec runs on, by default the first of them."""

    def __init__(self, cluster, command, hosts, ranks=1, head=None, environment=None, last_word=LAST_WORD):
        """command: words; ranks: of each node; environment: the ranks' variables."""
        self.cluster, self.last_word = cluster, last_word
        self.marker = f"{os.getpid()}-{next(numbers)}"
        self.file = cluster.work / f"launch-{self.marker}.out"
        names = [str(host) for host in hosts]
        settings = [f"{name}={value}" for name, value in (environment or {}).items()]
        words = [*launchers.words(names, ranks, cluster.folder / "ssh"), "env", *settings, *command]
        self.begin = time.monotonic()
        with self.file.open("w") as output:
            self.process = cluster.node(head or names[0]).popen(
                words,
                {MARKER: self.marker, **launchers.variables()},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def output(self):
        return self.file.read_text(errors="replace")

    def seconds(self):
        return time.monotonic() - self.begin

    def is_running(self):
        return self.process.poll() is None

    def wait_for(self, pattern, limit=120):
        """Waits until the output matches. False: the launch ended before, or the time in seconds is over."""
        end = time.monotonic() + limit
        while not re.search(pattern, self.output(), re.M):
            if not self.is_running() or time.monotonic() > end:
                return bool(re.search(pattern, self.output(), re.M))
            time.sleep(0.05)
        return True

    def wait(self, limit=300, patience=PATIENCE):
        """Waits for the end and returns the Outcome. A launch that hangs, or runs longer than limit seconds, is killed."""
        end, said = time.monotonic() + limit, None
        hung = over = False
        while self.is_running() and not hung and not over:
            now = time.monotonic()
            if said is None and re.search(self.last_word, self.output(), re.M):
                said = now
            hung = said is not None and now - said > patience
            over = now > end
            time.sleep(0.05)
        seconds = self.seconds()
        if hung or over:
            self.kill()
        return Outcome(None if hung or over else self.process.returncode, hung, seconds, self.output())

    def processes(self):
        """[(number, command line)] of its processes that exist, on every node: launcher, proxies, ranks."""
        found = [(pid, " ".join(processes.command_line(pid))) for pid in self.cluster.marked(self.marker)]
        return [(pid, line) for pid, line in found if line]

    def kill(self):
        """Ends all its processes."""
        while running := [pid for pid, _ in self.processes()]:
            processes.kill_all(running)
            time.sleep(0.05)
        self.process.wait()
