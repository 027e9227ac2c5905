"""cmake/debian.sh with a dpkg, an apt and scripts that note how they were called: what it installs with root and without."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOBODY = 65534
INSTALLED = ("cmake", "git")


class Debian(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kzero_debian_")
        self.addCleanup(folder.cleanup)
        self.tree = Path(folder.name)
        self.calls = self.tree / "calls"
        self.calls.touch()
        for name in ("bin", "cmake", ".deps/venv/bin"):
            (self.tree / name).mkdir(parents=True)
        shutil.copy(ROOT / "cmake/debian.sh", self.tree / "cmake")
        for name in ("bash", "dirname", "grep"):
            (self.tree / "bin" / name).symlink_to(shutil.which(name))
        self.script("bin/dpkg-query", f'case ${{!#}} in {"|".join(INSTALLED)}) printf installed ;; *) exit 1 ;; esac')
        self.script("bin/apt-get", f'echo "apt-get $*" >>{self.calls}')
        for name in ("install", "rm"):  # of /usr/sbin/policy-rc.d, where the system has none
            self.script(f"bin/{name}", "exit 0")
        self.script(".deps/venv/bin/python3", "exit 0")
        for name in ("kokkos", "onednn", "cuda_toolkit"):
            self.script(f"cmake/{name}.sh", f'echo "{name} $*" >>{self.calls}')

    def script(self, name, body):
        path = self.tree / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def run_it(self, *words, user=None):
        for path in (self.tree, *self.tree.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o777)
        return subprocess.run(
            ["bash", self.tree / "cmake/debian.sh", *words],
            env={"PATH": str(self.tree / "bin")},
            user=user,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def run_without_root(self, *words):
        return self.run_it(*words, user=NOBODY if os.geteuid() == 0 else None)

    def called(self):
        return self.calls.read_text().splitlines()

    def test_the_word_ci_installs_ruff_with_the_python_of_this_checkout(self):
        self.script(".deps/venv/bin/pip", f'echo "another checkout" >>{self.calls}')
        self.script(
            ".deps/venv/bin/python3", f'case "$*" in "-c "*ruff*) exit 1 ;; "-m pip "*) echo "$*" >>{self.calls} ;; esac'
        )
        self.assertEqual(self.run_without_root("tests").returncode, 0)
        self.assertEqual(self.called(), ["kokkos host"])
        self.assertEqual(self.run_without_root("ci").returncode, 0)
        install, kokkos = self.called()[1:]
        self.assertRegex(install, r"^-m pip install -q --no-deps ruff==[0-9.]+$")
        self.assertEqual(kokkos, "kokkos host")

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_root_installs_what_the_words_ask_for(self):
        packages = {}
        for words in ((), ("tests",), ("ci",), ("tests", "ci")):
            self.calls.write_text("")
            done = self.run_it(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            update, install, kokkos = self.called()
            self.assertEqual((update, kokkos), ("apt-get update -qq", "kokkos host"))
            packages[words] = set(install.split()) - set("apt-get install -y -qq --no-install-recommends".split())
        program = packages[()]
        self.assertLessEqual({"g++", "libtomlplusplus-dev", "mpich", "python3-matplotlib"}, program)
        self.assertFalse(
            program & {*INSTALLED, "libgtest-dev", "libbenchmark-dev", "slurm-wlm", "munge", "fish", "zsh", "clang"}
        )
        self.assertLessEqual({"libgtest-dev", "slurm-wlm", "zsh"}, packages["tests",] - program)
        self.assertLessEqual({"clang", "clang-format", "debootstrap"}, packages["ci",] - packages["tests",])
        self.assertEqual(packages["tests", "ci"], packages["tests",] | packages["ci",])

    def test_without_root_it_gives_the_command_and_does_the_rest(self):
        done = self.run_without_root("onednn")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        (command,) = (line for line in done.stderr.splitlines() if line.startswith("  "))
        self.assertTrue(
            command.startswith("  apt-get update && apt-get install -y --no-install-recommends ccache g++ "), command
        )
        self.assertFalse(set(command.split()) & {*INSTALLED})
        self.assertEqual(self.called(), ["kokkos host", "onednn "])

    def test_a_system_without_dpkg_gets_the_list(self):
        (self.tree / "bin/dpkg-query").unlink()
        done = self.run_without_root()
        self.assertEqual(done.returncode, 0)
        self.assertIn("this system has no dpkg", done.stderr)
        self.assertIn("libhdf5-mpich-dev", done.stderr)
        self.assertEqual(self.called(), ["kokkos host"])

    def test_a_step_that_fails_is_named_and_the_others_run(self):
        self.script("cmake/kokkos.sh", "exit 3")
        done = self.run_without_root("onednn")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"debian.sh: failed: bash {self.tree}/cmake/kokkos.sh host\n", done.stderr)
        self.assertEqual(self.called(), ["onednn "])

    def test_an_unknown_word_is_refused(self):
        done = self.run_without_root("test")
        self.assertEqual(
            (done.returncode, done.stderr), (2, "usage: bash cmake/debian.sh [tests] [ci] [cuda] [arm] [onednn]\n")
        )
        self.assertEqual(self.called(), [])


if __name__ == "__main__":
    unittest.main()
