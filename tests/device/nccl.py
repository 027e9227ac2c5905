"""The part in which ranks on one device communicate over NCCL: the bits of one rank, failures, test programs, and NCCL's memory.

Each rank has a host id of its own (programs.OWN_HOST), so NCCL takes the ranks for hosts that are connected by sockets. Kernels of
several processes take turns on a device, which makes a collective some ten milliseconds long: nothing here measures NCCL's speed.
"""

import dataclasses
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from correctness import report_tests
from device_memory import UsedMemory
from gtest_run import test_program
from launches import TENSOR_LOSS, small
from training import expect_bits, largest_difference, read_metrics

# A variable of the caller wins; an empty one leaves NCCL its default.
SETTINGS = {
    "NCCL_SOCKET_IFNAME": "lo",
    "NCCL_NET": "Socket",
    "NCCL_IB_DISABLE": "1",
    "NCCL_MNNVL_ENABLE": "0",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_CUMEM_HOST_ENABLE": "0",
    "NCCL_RAS_ENABLE": "0",
    "NCCL_MAX_CTAS": "2",
    "NCCL_ALGO": "Ring",
    "NCCL_PROTO": "Simple",
    "NCCL_DEBUG": "INFO",
}
NCCL = {"run.communicator": "nccl", "run.watchdog": "30s"}
# (name, ranks, overrides), the fewest collectives first: these give the bits of one rank
SAME_BITS = (
    ("stage 1", 2, {"zero.stage": 1}),
    ("stage 3", 2, {"zero.stage": 3}),
    ("stage 0", 2, {"zero.stage": 0}),
    ("stage 2", 2, {"zero.stage": 2}),
    ("three ranks, stage 3", 3, {"zero.stage": 3}),
    ("two nodes, stage 3", 2, {"zero.stage": 3, "grid.node": 1}),
    ("two nodes of two, stage 2", 4, {"zero.stage": 2, "grid.node": 2}),
)
# These round in another order.
CLOSE = (("tensor ranks", 2, {"grid.tensor": 2}), ("NCCL's own sums", 2, {"zero.stage": 2, "zero.reduction": "library"}))
# A long run. One of its ranks is stopped or killed. Hydra must not end the other ranks.
LONG = {"zero.stage": 3, "train.steps": 100000, "run.watchdog": "10s", "run.heartbeat": "0s"}
KEEP_THE_OTHERS = ("-disable-auto-cleanup",)
END = "over group"  # in the message of a rank that ends because another is gone, which names the collective and its group
PROGRAMS = (("test_comm", 2), ("test_zero", 2), ("test_comm", 3), ("test_parity", 2))


def settings(environment):
    return {key: environment.get(key, value) for key, value in SETTINGS.items()}


def with_nccl(machine, name):
    """The machine for a run over NCCL; its ranks' logs of NCCL are named after the run."""
    return dataclasses.replace(machine, nccl=settings(os.environ) | {"NCCL_DEBUG_FILE": f"{machine.logs / name}.%p.nccl"})


def label_of(name):
    return "nccl_" + name.replace(", ", "_").replace(" ", "_").replace("'", "")


def launch(machine, clock, name, ranks, changes, options=()):
    label = label_of(name)
    return small(with_nccl(machine, label), clock, label, NCCL | changes, ranks, options)


def transport(machine, name):
    """The lines of NCCL's logs that name the transport between ranks."""
    logs = machine.logs.glob(f"{label_of(name)}.*.nccl")
    lines = [line for log in logs for line in log.read_text(errors="replace").splitlines() if " via " in line]
    return sorted({line.partition(" via ")[2].split()[0] for line in lines})


def rank_of(metrics, rank):
    """The process of a rank of the run that writes these metrics, or None."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            if b"PMI_RANK=%d" % rank in variables and str(metrics).encode() in (folder / "cmdline").read_bytes():
                return int(folder.name)
        except OSError:
            continue  # it has ended, or belongs to someone else
    return None


def send(machine, name, number, limit):
    """Sends a signal to rank 1 once the run has made two steps. Returns its process, or None if there was none in time."""
    metrics, end = machine.work / f"{label_of(name)}.jsonl", time.monotonic() + limit
    while time.monotonic() < end:
        if len(read_metrics(None, metrics).steps) >= 2 and (process := rank_of(metrics, 1)):
            os.kill(process, number)
            return process
        time.sleep(0.1)
    return None


def disturb(machine, clock, found, name, number):
    """A run of two ranks, of which one gets a signal. The other has to end by itself. If rank 1 hangs, kzero has to name the
    collective. If it is gone, MPI may end the other rank before NCCL and kzero notice."""
    clock.require(45)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(launch, machine, clock, name, 2, LONG, KEEP_THE_OTHERS)
        process = send(machine, name, number, 30)
        if process and number == signal.SIGSTOP:
            wait_for_end(machine, name, 30)
            os.kill(process, signal.SIGKILL)  # mpiexec waits for every rank
        done = running.result().done
    if not process:
        found.check(name, False, f"made no two steps: {done.how()}")
        return
    said = [line.strip() for line in done.text().splitlines() if END in line]
    ended = done.code not in (None, 0) and (bool(said) or number == signal.SIGKILL)
    found.check(name, ended, said[0] if said else f"no rank named a collective: {done.how()}")
    found.values[name] = {"code": done.code, "seconds": done.seconds, "said": said[:3]}


def wait_for_end(machine, name, limit):
    log, end = machine.logs / f"{label_of(name)}.log", time.monotonic() + limit
    while time.monotonic() < end and not (log.exists() and END in log.read_text(errors="replace")):
        time.sleep(0.1)


def trainings(machine, clock, found, alone):
    """The runs of SAME_BITS and CLOSE. Returns whether the first one worked: without it, none will."""
    for name, ranks, changes in SAME_BITS:
        run = launch(machine, clock, name, ranks, changes)
        expect_bits(found, name, run, alone)
        if name == SAME_BITS[0][0]:
            if not run.is_complete():
                return False
            report_transport(machine, found, name)
    for name, ranks, changes in CLOSE:
        run = launch(machine, clock, name, ranks, changes)
        far = largest_difference(run.losses(), alone.losses())
        text = f"losses differ by {far:.1e}, at most {TENSOR_LOSS:.0e}" if run.is_complete() else run.done.how()
        found.check(name, far <= TENSOR_LOSS, text)
    return True


def report_transport(machine, found, name):
    if machine.rehearses:
        found.leave_out("transport", "MPI is in NCCL's place")
        return
    found.values["transport"] = used = transport(machine, name)
    found.check("transport", bool(used) and all(way.startswith("NET/") for way in used), f"via {', '.join(used) or 'none'}")


def memory(machine, clock, found):
    """What two ranks use over NCCL and over MPI. The difference is NCCL's, with sockets and few channels."""
    peaks = {}
    for name, changes in (("mpi", {"run.communicator": "mpi"}), ("nccl", {})):
        with UsedMemory() as used:
            launch(machine, clock, f"memory {name}", 2, {"zero.stage": 3, "train.steps": 12} | changes)
        peaks[name] = used.peak
    found.values["memory_mib"] = peaks
    if None in peaks.values():
        found.leave_out("memory", "nvidia-smi is not on this machine")
        return
    found.lines.append(f"  NCCL, 2 ranks on one device: {(peaks['nccl'] - peaks['mpi']) / 2:.0f} MiB a rank more than MPI")


def nccl(machine, clock, found):
    """All of this part, the most informative first."""
    alone = small(machine, clock, "nccl_one_rank", {})
    if not found.check("one rank", alone.is_complete(), alone.done.how()):
        return
    if not trainings(machine, clock, found, alone):
        return
    disturb(machine, clock, found, "a rank that is killed", signal.SIGKILL)
    memory(machine, clock, found)
    disturb(machine, clock, found, "a rank that hangs", signal.SIGSTOP)
    for program, ranks in PROGRAMS:
        name = f"{program} np{ranks}"
        if machine.has(program):
            clock.require(10)
            label = f"nccl_{program}_np{ranks}"
            report_tests(found, name, test_program(with_nccl(machine, label), clock, program, ranks, label=label))
        else:
            found.leave_out(name, "is not in the bundle")
