"""Control groups of both versions, on texts and folders like those of real systems. They need neither root nor a cluster."""

import tempfile
import unittest
from pathlib import Path

from nodes.groups import Groups, Hierarchy, choose_parent, find_hierarchies
from nodes.shell import ClusterError
from testing import main

V1_MOUNTS = """25 20 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
26 25 0:23 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
27 25 0:24 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
28 25 0:25 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
30 20 0:24 / /elsewhere/memory rw - cgroup cgroup rw,memory
"""
V1_GROUPS = "5:cpu,cpuacct:/user/1\n4:memory:/docker/abc/job\n1:name=systemd:/\n0::/init.scope\n"
V2_MOUNTS = "26 25 0:23 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


class ControlGroups(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def make(self, path, **files):
        (self.folder / path).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (self.folder / path / name.replace("__", ".")).write_text(text)

    def test_version_1_has_a_tree_for_each_controller(self):
        found = find_hierarchies(V1_MOUNTS, V1_GROUPS)
        self.assertEqual(
            found["cpu"], Hierarchy(1, Path("/sys/fs/cgroup/cpu,cpuacct"), Path("/sys/fs/cgroup/cpu,cpuacct/user/1"))
        )
        self.assertEqual(found["memory"].own, Path("/sys/fs/cgroup/memory/job"))  # the mount shows the container's part
        self.assertEqual(
            found["freezer"], Hierarchy(2, Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/unified/init.scope"))
        )

    def test_version_2_has_one_tree(self):
        found = find_hierarchies(V2_MOUNTS, "0::/user.slice/session-1.scope\n")
        self.assertEqual(set(found), {"cpu", "memory", "freezer"})
        self.assertEqual(found["cpu"].own, Path("/sys/fs/cgroup/user.slice/session-1.scope"))
        self.assertEqual(find_hierarchies(V2_MOUNTS, "0::/../outside\n")["cpu"].own, Path("/sys/fs/cgroup"))
        self.assertEqual(find_hierarchies("", ""), {})

    def test_groups_of_version_2_are_made_where_the_controller_is_handed_on(self):
        self.make(".", cgroup__subtree_control="cpu memory", cgroup__procs="")
        self.make("own", cgroup__procs="1")
        hierarchy = Hierarchy(2, self.folder, self.folder / "own")
        self.assertEqual(choose_parent(hierarchy, "cpu"), self.folder)  # the own group has no such file
        self.assertEqual(choose_parent(hierarchy, "freezer"), self.folder / "own")
        self.assertIsNone(choose_parent(Hierarchy(2, self.folder / "own", self.folder / "own"), "cpu"))
        self.assertIsNone(choose_parent(Hierarchy(1, self.folder, self.folder / "missing"), "cpu"))

    def texts(self, *names):
        return [(self.folder / "cluster/node1" / name).read_text() for name in names]

    def test_limits_in_version_1(self):
        self.make("cluster/node1", cpu__cfs_quota_us="", memory__limit_in_bytes="", freezer__state="")
        groups = Groups("cluster", {name: (1, str(self.folder)) for name in ("cpu", "memory", "freezer")})
        groups.limit_cpu("node1", 0.1)
        groups.limit_memory("node1", 1 << 30)
        groups.freeze("node1", True)
        names = ("cpu.cfs_period_us", "cpu.cfs_quota_us", "memory.limit_in_bytes", "freezer.state")
        self.assertEqual(self.texts(*names), ["20000", "2000", "1073741824", "FROZEN"])
        groups.limit_cpu("node1", None)
        groups.limit_memory("node1", None)
        groups.freeze("node1", False)
        self.assertEqual(self.texts(*names), ["20000", "-1", "-1", "THAWED"])

    def test_limits_in_version_2(self):
        self.make("cluster/node1", cpu__max="", memory__max="", cgroup__freeze="")
        groups = Groups("cluster", {name: (2, str(self.folder)) for name in ("cpu", "memory", "freezer")})
        groups.limit_cpu("node1", 1.5)
        groups.limit_memory("node1", 1 << 30)
        groups.freeze("node1", True)
        names = ("cpu.max", "memory.max", "cgroup.freeze")
        self.assertEqual(self.texts(*names), ["30000 20000", "1073741824", "1"])
        groups.limit_cpu("node1", None)
        groups.limit_memory("node1", None)
        groups.freeze("node1", False)
        self.assertEqual(self.texts(*names), ["max 20000", "max", "0"])

    def test_a_missing_controller_is_named(self):
        self.make("cluster/node1", cpu__max="")
        groups = Groups("cluster", {"cpu": (2, str(self.folder)), "memory": (2, str(self.folder))})
        self.assertEqual(groups.why_not("node1", "cpu"), "")
        with self.assertRaisesRegex(ClusterError, "node1 has no control group with the memory controller in "):
            groups.limit_memory("node1", 1)
        with self.assertRaisesRegex(ClusterError, "no control groups with the freezer controller"):
            groups.freeze("node1", True)


if __name__ == "__main__":
    main()
