"""Process 1 of a node: makes the node's file system, starts its sshd and collects ended processes.

    python3 init.py FOLDER NAME READY    in new mount, UTS, IPC, PID and network namespaces; READY: a descriptor to report to

Takes nothing from its package, as it is a program of its own.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

MS_BIND, MS_REC = 4096, 16384
PRIVATE = {"/tmp": "1777", "/var/tmp": "1777", "/dev/shm": "1777", "/run": "755"}  # folders that a node has for itself
libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind=None, flags=0, options=None):
    arguments = [word and str(word).encode() for word in (source, target, kind)]
    if libc.mount(*arguments, flags, options and options.encode()) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {source} at {target}: {os.strerror(code)}")


def replace_folders(kept):
    """Puts empty folders in place of PRIVATE ones. Files that are kept of them are seen through descriptors opened before."""
    opened = {path: os.open(path, os.O_PATH) for path in kept if any(path.is_relative_to(p) for p in PRIVATE)}
    for path, mode in PRIVATE.items():
        mount("tmpfs", path, "tmpfs", options=f"mode={mode}")
    for path, descriptor in opened.items():
        path.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", path, flags=MS_BIND | MS_REC)
        os.close(descriptor)


def replace_file(path, text):
    """A file that only this node has in place of the machine's."""
    own = Path("/run/node") / Path(path).name
    own.parent.mkdir(exist_ok=True)
    own.write_text(text)
    mount(own, path, flags=MS_BIND)


def replace_system_folders():
    """/proc of the node's processes and /sys of its network; the control groups stay visible below /sys."""
    groups = os.open("/sys/fs/cgroup", os.O_PATH)
    mount("sysfs", "/sys", "sysfs")
    mount(f"/proc/self/fd/{groups}", "/sys/fs/cgroup", flags=MS_BIND | MS_REC)
    os.close(groups)
    mount("proc", "/proc", "proc")


def main():
    folder, name, ready = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    socket.sethostname(name)
    kept = json.loads((folder / "cluster.json").read_text())["keep"]
    replace_folders([folder, *map(Path, kept)])
    replace_system_folders()
    replace_file("/proc/sys/kernel/random/boot_id", f"{uuid.uuid4()}\n")
    replace_file("/etc/hosts", (folder / "hosts").read_text())
    if Path("/etc/hostname").exists():
        replace_file("/etc/hostname", f"{name}\n")
    Path("/run/sshd").mkdir()
    subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config")], stdin=subprocess.DEVNULL)
    while not Path("/run/sshd.pid").exists():  # sshd writes it once it listens
        time.sleep(0.01)
    os.write(ready, b"ready")
    os.close(ready)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(1)


if __name__ == "__main__":
    main()
