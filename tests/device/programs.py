"""Runs the programs of an unpacked bundle: with a time limit, a log file each, and the libraries of the bundle and of CUDA."""

import glob
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

CUDA_FOLDERS = ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib", "/usr/local/nvidia/lib64")
PATIENCE = 5  # seconds for a process that was asked to end
# NCCL refuses ranks that share a GPU of one host, and tells hosts apart by this variable.
OWN_HOST = 'NCCL_HOSTID=rank$PMI_RANK exec "$0" "$@"'


class OutOfTime(Exception):
    """A part of the hour has used its time."""


class Clock:
    """The time that is left of a limit in seconds."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return max(0.0, self.end - time.monotonic())

    def require(self, seconds):
        """Ends the part unless so many seconds are left."""
        if self.left() < seconds:
            raise OutOfTime


@dataclass
class Done:
    code: int | None  # exit code, negative for a signal; None: the time limit ended it
    seconds: float
    log: Path

    def text(self):
        return self.log.read_text(errors="replace")

    def how(self):
        """How it ended, with the last line that it printed, for people."""
        lines = [line.strip() for line in self.text().splitlines() if line.strip()]
        last = f": {lines[-1][:200]}" if lines else ""
        if self.code is None:
            return f"ended after {self.seconds:.0f} s{last}"
        if self.code < 0:
            return f"killed by {signal.Signals(-self.code).name}{last}"
        return f"exit code {self.code}{last}"


def run(command, log, seconds, environment=None, folder=None):
    """Runs a command for at most so many seconds. Its output and errors go to the log. All that it started ends with it."""
    begin = time.monotonic()
    with open(log, "wb") as file:
        try:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        except OSError as problem:
            file.write(f"{command[0]}: {problem.strerror}\n".encode())
            return Done(127, 0.0, Path(log))
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
            end(process)
    return Done(code, time.monotonic() - begin, Path(log))


def end(process):
    """Ends a process and its session: mpiexec passes SIGTERM on to its ranks."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(PATIENCE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def cuda_folders():
    """Where CUDA's libraries are: the folders of NVIDIA's wheels for this Python, then a toolkit's, then those of the caller."""
    try:
        import nvidia

        wheels = [folder for path in nvidia.__path__ for folder in sorted(glob.glob(f"{path}/*/lib"))]
    except ImportError:
        wheels = []
    callers = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [folder for folder in (*wheels, *CUDA_FOLDERS, *callers) if folder and Path(folder).is_dir()]


@dataclass
class Machine:
    """An unpacked bundle on this machine. `root`: the checkout, whose tests/data the test programs read."""

    bundle: Path
    root: Path
    work: Path  # for the files of runs
    logs: Path  # of the current part
    no_device: str = ""  # why programs cannot use a device
    rehearses: bool = False  # on a host: what needs a device is left out, models are small, and MPI takes NCCL's place
    kept: dict = field(default_factory=dict)  # trainings by what they ran
    facts: dict = field(default_factory=dict)  # about the device and the libraries
    nccl: dict = field(default_factory=dict)  # variables of launches over NCCL; with them, each rank gets a host id of its own

    def program(self, name):
        return self.bundle / "bin" / name

    def programs(self):
        return sorted(path.name for path in (self.bundle / "bin").iterdir())

    def has(self, name):
        return self.program(name).exists()

    def variables(self):
        """Variables that programs of the bundle need in addition to the environment."""
        return {
            "LD_LIBRARY_PATH": ":".join([str(self.bundle / "lib"), *cuda_folders()]),
            "OMP_NUM_THREADS": "1",
            "OMP_PROC_BIND": "false",
            "CUDA_MODULE_LOADING": "LAZY",
            **self.nccl,
        }

    def command(self, program, *arguments, ranks=None, options=()):
        """A program of the bundle with its arguments, under mpiexec with `options` if `ranks` is given."""
        launcher = [self.program("mpiexec.hydra"), *options, "-n", ranks] if ranks else []
        if ranks and self.nccl:
            launcher += ["bash", "-c", OWN_HOST]
        return [*launcher, self.program(program), *arguments]

    def run(self, name, command, seconds, wrapper=()):
        """Runs a command of this bundle in the checkout. `name`: of its log. `wrapper`: a tool of the machine, such as a profiler,
        which must not load the bundle's libraries itself."""
        if wrapper:
            setting = [f"{key}={value}" for key, value in self.variables().items()]
            command, environment = [*wrapper, "env", *setting, *command], dict(os.environ)
        else:
            environment = os.environ | self.variables()
            environment = {key: value for key, value in environment.items() if value or not key.startswith("NCCL_")}
        return run(command, self.logs / f"{name}.log", seconds, environment, self.root)


def complain(text):
    print(text, file=sys.stderr)
    raise SystemExit(2)
