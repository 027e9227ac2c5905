"""A Slurm whose nodes are those of a cluster: slurmctld on node1, slurmd and munged everywhere, PMI-2 for MPICH."""

import contextlib
import os
import signal
import subprocess
import sys

from nodes.shell import ClusterError, wait_until
from training import ROOT

sys.path.insert(0, str(ROOT / "tests/jobs"))
from one_node_slurm import OneNodeSlurm, cgroup_conf, wait_for  # noqa: E402

PATIENCE = 100  # seconds, on a machine that is busy with other things
CONF = """
ClusterName=kzerotest
SlurmctldHost=node1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
MpiDefault=pmi2
SlurmdTimeout={timeout}
MessageTimeout=10
KillWait=5
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=node[1-{count}] CPUs={cpus} State=UNKNOWN
PartitionName=test Nodes=node[1-{count}] Default=YES MaxTime=INFINITE State=UP
"""


class SlurmOverNodes(OneNodeSlurm):
    """Has the commands and waits of OneNodeSlurm.

    timeout: seconds of silence after which Slurm takes a node for lost; cpus: what each node claims to have.
    """

    def __init__(self, cluster, timeout=20, cpus=1):
        self.cluster = cluster
        self.folder = cluster.folder / "slurm"
        self.daemons = []
        self.environment = {"SLURM_CONF": f"{self.folder}/slurm.conf"}
        for name in ("state", *(f"spool.{node}" for node in cluster.nodes)):
            (self.folder / name).mkdir(parents=True)
        conf = CONF.format(folder=self.folder, timeout=timeout, count=len(cluster.nodes), cpus=cpus)
        (self.folder / "slurm.conf").write_text(conf)
        (self.folder / "cgroup.conf").write_text(cgroup_conf(os.environ["PATH"] + ":/usr/sbin"))
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
        for node in cluster.nodes:
            self.start_node(node)
        self.start_daemon(cluster.nodes[0], "slurmctld", "-D")
        try:
            self.wait_idle(cluster.nodes)
        except TimeoutError as problem:
            logs = "".join(f"{path.name}:\n{path.read_text()}" for path in self.folder.glob("*.log"))
            raise ClusterError(f"Slurm did not start: {problem}\n{logs}") from problem

    def start_node(self, node):
        """Starts the daemons that every node has, for instance after its boot."""
        code, said = node.run(["install", "-d", "-m", "755", "/run/munge"])
        if code != 0:
            raise ClusterError(said)
        self.start_daemon(
            node,
            "munged",
            "--foreground",
            "--force",
            f"--key-file={self.folder}/munge.key",
            "--pid-file=/run/munge/munged.pid",
            "--seed-file=/run/munge/munged.seed",
            "--log-file=/run/munge/munged.log",
        )
        wait_until(f"munged on {node}", lambda: node.run(["test", "-S", "/run/munge/munge.socket.2"])[0] == 0, PATIENCE)
        self.start_daemon(node, "slurmd", "-D", "-N", node.name)

    def start_daemon(self, node, *words):
        with (self.folder / f"{words[0]}.{node}.log").open("a") as log:
            self.daemons.append(
                node.popen(words, self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            )

    def wait_idle(self, nodes):
        names = sorted(node.name for node in nodes)
        wait_for(f"idle nodes {names}", lambda: sorted(self.idle_nodes()) == names)

    def idle_nodes(self):
        return self("sinfo", "-h", "-N", "-t", "idle", "-o", "%N", check=False).split()

    def __call__(self, *command, check=True, env=None):
        """Runs a command of Slurm on node1, in the folder that all nodes share, and returns its output."""
        code, said = self.cluster.nodes[0].run(command, {**self.environment, **(env or {})}, timeout=PATIENCE)
        if check and code != 0:
            raise RuntimeError(f"{command}: exit code {code}: {said}")
        return said.strip()

    def stop(self):
        """Kills the daemons. Jobs that run have to be cancelled before."""
        for daemon in self.daemons:
            with contextlib.suppress(ProcessLookupError):  # its node has been lost
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
