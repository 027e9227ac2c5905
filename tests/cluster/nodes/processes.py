"""Processes of this machine, read from /proc: those of a node, and those that a launch started."""

import os
import signal
from pathlib import Path


def all_pids():
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def command_line(pid):
    """The words of a process's command line; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def pid_namespace(pid):
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except OSError:
        return None


def stat(pid):
    """The fields of /proc/PID/stat from the third on; none if the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def parent(pid):
    fields = stat(pid)
    return int(fields[1]) if fields else None


def start_time(pid):
    """When a process began, in clock ticks since the machine's boot; tells processes with the same number apart."""
    fields = stat(pid)
    return int(fields[19]) if fields else None


def has_variable(pid, setting):
    """Whether a process began with NAME=VALUE in its environment."""
    try:
        return setting.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
