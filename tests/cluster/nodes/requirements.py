"""Requirements of a cluster on the machine."""

import os
import shutil

from .node import PATH
from .shell import ClusterError, call

PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "mpiexec": "mpich",
}
SLURM = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sbatch": "slurm-wlm", "munged": "munge"}
GLUSTER = {"glusterd": "glusterfs-server", "mount.glusterfs": "glusterfs-client"}


def missing(programs):
    """One sentence on the programs that are not installed; empty if all are. programs: {name: Debian package}."""
    absent = [name for name in programs if not shutil.which(name, path=PATH)]
    packages = sorted({programs[name] for name in absent})
    return f"{', '.join(absent)}: not found; Debian's packages are {', '.join(packages)}" if absent else ""


def why_not(programs=()):
    """Why no cluster can be started here; empty if it can. programs: further ones that a test needs."""
    if os.geteuid() != 0:
        return "a cluster of network namespaces needs root"
    if absent := missing({**PROGRAMS, **dict(programs)}):
        return absent
    try:
        call(
            "unshare",
            "--mount",
            "--uts",
            "--ipc",
            "--pid",
            "--net",
            "--fork",
            "--propagation",
            "private",
            "sh",
            "-c",
            "mount -t sysfs sysfs /sys && mount -t tmpfs tmpfs /run && ip link add br0 type bridge && "
            "ip link add veth0 type veth peer name veth1",
        )
    except ClusterError as problem:
        return f"this system allows no namespaces with a network: {problem}"
    return ""
