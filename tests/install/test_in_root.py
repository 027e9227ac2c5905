""".ci/in_root.sh with tools that note how they were called: when it skips, when it fails, and what its command runs in."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
SKIPPED = 77


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class InRoot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kzero_in_root_")
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)
        for name in ("bin", ".ci", ".deps/source/kept"):
            (self.tree / name).mkdir(parents=True)
        shutil.copy(ROOT / ".ci/in_root.sh", self.tree / ".ci")
        self.root = self.tree / "build/roots/suite"
        self.script("ccache", f'echo "{self.tree}/cache"')
        self.script("apt-get", "echo http://mirror/ubuntu; echo http://mirror/debian/")
        self.script(
            "debootstrap",
            f'echo "$*" >>{self.tree}/debootstrap.calls; mkdir -p "$3"/{{etc/dpkg/dpkg.cfg.d,root,usr/local/share}}',
        )
        self.script("git", 'mkdir "${!#}"; touch "${!#}/clone"')
        # The script's own commands run in the namespace, but mount nothing and stay in the file system.
        self.script("unshare", 'shift; exec "$@"')
        self.script("mknod", 'touch "$1"')
        self.script("mount", f'echo "$*" >>{self.tree}/mount.calls')
        self.script("chroot", '[[ $2 != /nothing ]] || exit 127\ncd "$1/root/kzero"; shift 5; exec "$@"')

    def script(self, name, body):
        path = self.tree / "bin" / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def run_it(self, *command, **variables):
        environment = {"PATH": f"{self.tree}/bin:{os.environ['PATH']}", **variables}
        return subprocess.run(
            ["bash", self.tree / ".ci/in_root.sh", "suite", *command],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def test_the_command_runs_in_a_clone_with_the_sources_that_are_there(self):
        done = self.run_it("ls", "-A", ".", ".deps/source")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.split(), [".:", ".deps", "clone", ".deps/source:", "kept"])
        self.assertEqual(
            (self.tree / "debootstrap.calls").read_text(), f"--variant=minbase suite {self.root}.new http://mirror/debian/\n"
        )
        self.assertFalse(self.root.exists())
        self.assertTrue((self.tree / "cache-suite").is_dir())

    def test_a_second_command_has_a_root_of_its_own_made_without_debootstrap(self):
        self.assertEqual(self.run_it("touch", "../of_the_first").returncode, 0)
        self.assertEqual(self.run_it("test", "!", "-e", "../of_the_first").returncode, 0)
        self.assertEqual(len((self.tree / "debootstrap.calls").read_text().splitlines()), 1)
        os.utime(f"{self.root}.base", (0, 0))
        self.assertEqual(self.run_it("true").returncode, 0)
        self.assertEqual(len((self.tree / "debootstrap.calls").read_text().splitlines()), 2)

    def test_without_a_mirror_of_debian_it_takes_debians_own(self):
        self.script("apt-get", "echo http://mirror/ubuntu")
        self.assertEqual(self.run_it("true").returncode, 0)
        self.assertIn(" http://deb.debian.org/debian\n", (self.tree / "debootstrap.calls").read_text())

    def test_the_command_cannot_write_to_this_machines_settings(self):
        self.assertEqual(self.run_it("true").returncode, 0)
        probe = [f"--bind {self.root} {self.root}", f"--rbind /proc {self.root}/proc"]
        mounts = [f"--rbind /{name} {self.root}/{name}" for name in ("proc", "dev")]
        mounts += [f"--bind /sys {self.root}/sys", f"-o remount,bind,ro {self.root}/sys"]
        cache = f"--bind {self.tree}/cache-suite {self.root}/root/.cache/ccache"
        self.assertEqual((self.tree / "mount.calls").read_text().splitlines(), [*probe, *mounts, cache])

    def test_folders_that_are_named_can_be_read(self):
        done = self.run_it(
            "test", "-d", f"{self.root}/usr/local/cuda/lib64", KZERO_ROOT_FOLDERS="/a b=/srv/bundle\n/c=/usr/local/cuda/lib64"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        mounts = [
            f"--bind /a b {self.root}/srv/bundle",
            f"-o remount,bind,ro {self.root}/srv/bundle",
            f"--bind /c {self.root}/usr/local/cuda/lib64",
            f"-o remount,bind,ro {self.root}/usr/local/cuda/lib64",
        ]
        self.assertEqual((self.tree / "mount.calls").read_text().splitlines()[-4:], mounts)

    def test_a_command_that_fails_passes_its_code_on(self):
        self.assertEqual(self.run_it("bash", "-c", "exit 3").returncode, 3)
        self.assertFalse(self.root.exists())

    def test_a_system_that_allows_no_root_is_named_and_skipped(self):
        self.script("unshare", 'echo "unshare: unshare failed: Operation not permitted" >&2; exit 1')
        done = self.run_it("true")
        self.assertEqual((done.returncode, done.stderr), (SKIPPED, ""))
        self.assertRegex(done.stdout, "^skipped: this system allows no .*: unshare: unshare failed: Operation not permitted\n$")
        self.assertFalse((self.tree / "debootstrap.calls").exists())
        self.assertFalse(self.root.exists())

    def test_the_probe_finds_a_folder_for_which_device_files_are_forbidden(self):
        self.script("mknod", 'echo "mknod: $1: Operation not permitted" >&2; exit 1')
        done = self.run_it("true")
        self.assertEqual(done.returncode, SKIPPED)
        self.assertRegex(done.stdout, "^skipped: .*: mknod: .*/null: Operation not permitted\n$")

    def test_an_archive_that_fails_is_a_failure(self):
        self.script("debootstrap", 'echo "E: Failed getting release file"; exit 1')
        done = self.run_it("true")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "E: Failed getting release file\n")

    def test_arguments_are_needed(self):
        done = self.run_it()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("usage: bash .ci/in_root.sh SUITE COMMAND...", done.stderr)


if __name__ == "__main__":
    unittest.main()
