"""A Slurm of one node that a test starts for itself and stops: own folder, ports, keys and daemons, no privileges kept.

It needs the packages slurm-wlm and munge, which `bash cmake/debian.sh tests` installs, and may run at the same time as another Slurm.
"""

import os
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PATIENCE = 100  # seconds, on a machine that is busy with other things
DAEMONS = ("munged", "slurmctld", "slurmd")

CONF = """
ClusterName=kzerotest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool_%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd_%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=pmi2
KillWait=5
SlurmdTimeout={timeout}
ReturnToService=2
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=DEFAULT CPUs={cpus} Gres=gpu:2 Features=cpu,gpu State=UNKNOWN
{nodes}
PartitionName=test Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


class EndedTooSoon(RuntimeError):
    """A job was done before it was stopped as often as a test wanted."""


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE} s for {what}")
        time.sleep(0.1)
    return found


def cgroup_conf(path):
    """The contents of cgroup.conf. Nothing in these clusters uses control groups, but slurmd wants them since version 24.05
    unless it is told, and does not start where none are mounted. Older versions do not know the word."""
    version = subprocess.run([shutil.which("slurmd", path=path), "-V"], capture_output=True, text=True, check=True).stdout
    year, month = re.search(r"(\d+)\.(\d+)", version).groups()
    return "CgroupPlugin=disabled\n" if (int(year), int(month)) >= (24, 5) else ""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class OneNodeSlurm:
    """cpus: what the node claims to have, so that jobs need not wait for one another on a small machine. It also claims
    two GPUs; nothing looks for them."""

    slurmd_timeout = 300  # seconds of silence after which a node is down

    def __init__(self, cpus):
        self.host = socket.gethostname().split(".")[0]
        self.names = self.node_names()
        path = os.environ["PATH"] + ":/usr/sbin"
        missing = [name for name in (*DAEMONS, "sbatch", "srun") if not shutil.which(name, path=path)]
        if missing:
            raise RuntimeError(
                f"{', '.join(missing)}: not found; the job tests run on a Slurm of their own, which needs "
                "the packages slurm-wlm and munge: bash cmake/debian.sh tests installs them"
            )
        self.folder = Path(tempfile.mkdtemp(prefix="kzero_slurm_"))
        self.folder.chmod(0o755)  # munged wants its socket where every user can reach it
        for name in ("state", *(f"spool_{name}" for name in self.names)):
            (self.folder / name).mkdir()
        ports = free_ports(1 + len(self.names))
        nodes = "\n".join(
            f"NodeName={name} NodeHostname={self.host} NodeAddr=127.0.0.1 Port={port}"
            for name, port in zip(self.names, ports[1:], strict=True)
        )
        conf = self.folder / "slurm.conf"
        conf.write_text(
            CONF.format(
                host=self.host,
                ports=ports,
                cpus=cpus,
                nodes=nodes,
                timeout=self.slurmd_timeout,
                names=",".join(self.names),
                user=pwd.getpwuid(os.getuid()).pw_name,
                folder=self.folder,
            )
        )
        (self.folder / "cgroup.conf").write_text(cgroup_conf(path))
        for gpu in range(2):
            (self.folder / f"gpu{gpu}").touch()
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/gpu[0-1]\n")
        self.environment = {**os.environ, "PATH": path, "SLURM_CONF": str(conf)}
        self.daemons = {}
        try:
            self._start()
        except Exception as problem:
            logs = "".join(f"{path.name}:\n{path.read_text()}" for path in self.folder.glob("*.log"))
            self.stop()
            raise RuntimeError(f"Slurm did not start: {problem}\n{logs}") from problem

    def node_names(self):
        return [self.host]

    def _start(self):
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
        socket_path = self.folder / "munge.socket"
        self._daemon(
            "munged",
            "--foreground",
            f"--socket={socket_path}",
            f"--key-file={key}",
            f"--pid-file={self.folder}/munged.pid",
            f"--seed-file={self.folder}/munged.seed",
        )
        self._wait("munged", socket_path.exists)
        self._daemon("slurmctld", "-D")
        for name in self.names:
            self.start_node(name)
        self._wait("idle nodes", lambda: self("sinfo", "-h", "-o", "%T", check=False) == "idle")

    def start_node(self, name):
        self._daemon("slurmd", "-D", "-N", name, key=name)

    def _daemon(self, name, *arguments, key=None):
        with (self.folder / f"{key or name}.log").open("w") as log:
            self.daemons[key or name] = subprocess.Popen(
                [name, *arguments], stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=self.environment
            )

    def _wait(self, what, condition):
        def met():
            for name, daemon in self.daemons.items():
                if daemon.poll() is not None:
                    raise RuntimeError(f"{name} ended")
            return condition()

        wait_for(what, met)

    def stop(self):
        for daemon in reversed(self.daemons.values()):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __call__(self, *command, check=True, **settings):
        """Runs a command of Slurm and gives its output."""
        environment = {**self.environment, **settings.pop("env", {})}
        result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment, **settings)
        if check and result.returncode != 0:
            raise RuntimeError(f"{command}: {result.stdout}{result.stderr}")
        return result.stdout.strip()

    def cancel_all(self):
        """Cancels every job and waits for the ends: one that outlived the daemons would run on alone."""
        self("scancel", "--quiet", "--user", str(os.getuid()), check=False)
        wait_for("the end of every job", lambda: not self("squeue", "-h"))

    def facts(self, job):
        """{field: value} of scontrol's description of a job, or of one task of an array (12_3)."""
        return dict(re.findall(r"(\w[\w/:]*)=(\S+)", self("scontrol", "show", "job", str(job))))

    def state(self, job):
        return self.facts(job)["JobState"]

    def wait_state(self, job, *states):
        return wait_for(f"job {job} in state {' or '.join(states)}", lambda: (s := self.state(job)) in states and s)

    def wait_restart(self, job, number):
        """Waits until the job has been submitted again so many times; it has ended for good if it is neither."""

        def submitted():
            facts = self.facts(job)
            if facts["JobState"] not in ("PENDING", "RUNNING", "COMPLETING"):
                problem = EndedTooSoon if facts["JobState"] == "COMPLETED" else RuntimeError
                raise problem(f"job {job} ended before its restart {number}: {facts}")
            return facts["JobState"] == "PENDING" and facts["Restarts"] == str(number)

        wait_for(f"restart {number} of job {job}", submitted)

    def start_now(self, job):
        """Ends the two minutes for which Slurm holds a job that was submitted again."""
        # slurmd takes a start within two seconds of a job's end for a late message of the run that has ended
        self("scontrol", "update", f"JobId={job}", "StartTime=now+3")
