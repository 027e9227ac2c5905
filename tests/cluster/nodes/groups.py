"""Control groups of a cluster's nodes, in version 1 or 2: CPU quota, memory limit, freezing.

Controllers that this system does not let us use are left out. Whoever needs one of them gets an error that says so.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from .shell import ClusterError

CONTROLLERS = ("cpu", "memory", "freezer")
PERIOD = 20000  # microseconds of a CPU quota
SHARES = {1: ("cpu.shares", 1024, 262144), 2: ("cpu.weight", 100, 10000)}  # file, weight of one process, largest value


@dataclass(frozen=True)
class Hierarchy:
    """A mounted tree of control groups, and the group of this process in it."""

    version: int
    mount: Path
    own: Path


def find_hierarchies(mounts, groups):
    """{controller: Hierarchy}. mounts and groups are the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    paths = {}
    for line in groups.splitlines():
        _, names, path = line.split(":", 2)
        paths.update((name, path) for name in names.split(","))
    found, unified = {}, None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        root, point = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2":
            unified = unified or Hierarchy(2, Path(point), below(point, root, paths.get("", "/")))
        elif kind == "cgroup":
            for name in set(options.split(",")) & set(CONTROLLERS):
                found.setdefault(name, Hierarchy(1, Path(point), below(point, root, paths.get(name, "/"))))
    if unified:
        found = {**{name: unified for name in CONTROLLERS}, **found}
    return found


def below(point, root, path):
    """The folder of group `path` where the tree's group `root` is mounted at `point`; the mount itself if it is outside."""
    inside = Path(path).is_relative_to(root) and ".." not in Path(path).parts
    return Path(point) / Path(path).relative_to(root) if inside else Path(point)


def allow(group, controller):
    """Whether groups below `group` of version 2 have the controller, after asking for it if necessary."""
    if controller == "freezer":
        return (group / "cgroup.procs").exists()  # part of every group
    try:
        if controller not in (group / "cgroup.subtree_control").read_text().split():
            (group / "cgroup.subtree_control").write_text(f"+{controller}")
        return controller in (group / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False  # the controller is not here, or the group has processes of its own


def choose_parent(hierarchy, controller):
    """The group below which a cluster's groups are made, so that limits of this process hold for nodes; None: nowhere."""
    if hierarchy.version == 1:
        return hierarchy.own if hierarchy.own.is_dir() else None
    return next((group for group in (hierarchy.own, hierarchy.mount) if allow(group, controller)), None)


def choose_parents():
    """{controller: (version, folder)} for a new cluster of this process."""
    found = find_hierarchies(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    parents = {controller: (hierarchy.version, choose_parent(hierarchy, controller)) for controller, hierarchy in found.items()}
    return {controller: (version, str(folder)) for controller, (version, folder) in parents.items() if folder}


class Groups:
    """The control groups of one cluster. name: theirs below every parent; parents: as choose_parents() returned them."""

    def __init__(self, name, parents):
        self.name = name
        self.versions = {controller: version for controller, (version, _) in parents.items()}
        self.parents = {controller: Path(folder) for controller, (_, folder) in parents.items()}

    def create(self, nodes):
        """Makes the cluster's groups and one for each node. Groups that cannot be made are left out."""
        for controller, parent in self.parents.items():
            group = parent / self.name
            try:
                group.mkdir(exist_ok=True)
                if self.versions[controller] == 2 and not allow(group, controller):
                    continue
                for node in nodes:
                    (group / node).mkdir(exist_ok=True)
                if controller == "cpu":  # each node weighs as much as a process outside, not all of them together
                    file, weight, most = SHARES[self.versions[controller]]
                    (group / file).write_text(str(min(weight * len(nodes), most)))
            except OSError:
                continue

    def folders(self, node):
        """{controller: folder} of the groups that the node has."""
        folders = {controller: parent / self.name / node for controller, parent in self.parents.items()}
        return {controller: folder for controller, folder in folders.items() if self._usable(controller, folder)}

    def _usable(self, controller, folder):
        files = {
            "cpu": ("cpu.cfs_quota_us", "cpu.max"),
            "memory": ("memory.limit_in_bytes", "memory.max"),
            "freezer": ("freezer.state", "cgroup.freeze"),
        }
        return (folder / files[controller][self.versions[controller] - 1]).exists()

    def enter(self, node):
        """Moves the calling process into the node's groups."""
        for folder in set(self.folders(node).values()):
            (folder / "cgroup.procs").write_text("0")

    def limit_cpu(self, node, cpus):
        """cpus: how many cores' time the node gets, such as 0.1; None: no limit."""
        folder, version = self._folder(node, "cpu")
        quota = None if cpus is None else max(1000, round(PERIOD * cpus))
        if version == 2:
            (folder / "cpu.max").write_text(f"{'max' if quota is None else quota} {PERIOD}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD))
            (folder / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))

    def limit_memory(self, node, size):
        """size: bytes of all the node's processes; None: no limit."""
        folder, version = self._folder(node, "memory")
        if version == 2:
            (folder / "memory.max").write_text("max" if size is None else str(size))
        else:
            (folder / "memory.limit_in_bytes").write_text(str(-1 if size is None else size))

    def freeze(self, node, frozen):
        folder, version = self._folder(node, "freezer")
        if version == 2:
            (folder / "cgroup.freeze").write_text("1" if frozen else "0")
        else:
            (folder / "freezer.state").write_text("FROZEN" if frozen else "THAWED")

    def why_not(self, node, controller):
        """Why the node has no such control group; empty if it has one."""
        if controller in self.folders(node):
            return ""
        if controller not in self.parents:
            return f"this system has no control groups with the {controller} controller that this process may use"
        return f"{node} has no control group with the {controller} controller in {self.parents[controller]}"

    def _folder(self, node, controller):
        if reason := self.why_not(node, controller):
            raise ClusterError(reason)
        return self.folders(node)[controller], self.versions[controller]

    def remove(self):
        """Removes the groups, whose processes have ended."""
        for parent in set(self.parents.values()):
            group = parent / self.name
            for folder in [*sorted(group.glob("*/")), group] if group.is_dir() else []:
                remove_group(folder)


def remove_group(folder):
    for _ in range(100):
        try:
            folder.rmdir()
            return
        except OSError:  # an ended process leaves its group a little later
            time.sleep(0.05)
    raise ClusterError(f"{folder} has processes and cannot be removed: {(folder / 'cgroup.procs').read_text().split()}")
