"""cmake/package.py on the build that the environment names (KZERO_BUILD): what is in the folder, and what it needs from outside."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
LAUNCHER = os.environ["KZERO_LAUNCHER"].split()

spec = importlib.util.spec_from_file_location("package", ROOT / "cmake/package.py")
package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)

# A build for this machine may need its newest libraries. build/package is linked in another way.
ANY = {"GLIBC": "2.99", "GLIBCXX": "3.4.99", "CXXABI": "1.3.99", "GCC": "99.0"}


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Path(tempfile.mkdtemp(prefix="kzero_package_"))
        cls.addClassCleanup(shutil.rmtree, cls.temporary, ignore_errors=True)
        made, cls.folder = cls.temporary / "made", cls.temporary / "moved"
        limits = [f"--limit={name}={version}" for name, version in ANY.items()]
        command = ["python3", "-B", ROOT / "cmake/package.py", os.environ["KZERO_BUILD"], "--folder", made, *limits]
        subprocess.run(command, check=True)
        made.rename(cls.folder)
        cls.environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}

    def run_it(self, *command, **variables):
        return package.output_of(*command, env=self.environment | variables, cwd=self.temporary, timeout=200)

    def copy(self):
        """A copy of the program and the smallest library, for changes."""
        folder = Path(tempfile.mkdtemp(dir=self.temporary))
        (folder / "bin").mkdir()
        (folder / "lib/kzero").mkdir(parents=True)
        shutil.copy(self.folder / "bin/kzero", folder / "bin")
        for file in (self.folder / "lib/kzero").glob("libgomp*"):
            shutil.copy(file, folder / "lib/kzero")
        return folder

    def test_the_folders_and_programs(self):
        self.assertEqual({p.name for p in self.folder.iterdir()}, {"README", "bin", "lib", "licences", "share"})
        self.assertEqual({p.name for p in (self.folder / "bin").iterdir()}, {"kzero", "kzero-prepare", "kzero-report"})
        self.assertEqual({p.name for p in (self.folder / "lib").iterdir()}, {"kzero"})
        share = {p.name for p in (self.folder / "share").iterdir()}
        self.assertEqual(share, {"bash-completion", "fish", "kzero", "man", "modulefiles", "zsh"})
        for file in (
            "README.md",
            "docs/installing.md",
            "input/quickstart.toml",
            "jobscripts/slurm_cpu.sh",
            "postprocess/report.py",
        ):
            self.assertEqual((self.folder / "share/kzero" / file).read_bytes(), (ROOT / file).read_bytes())

    def test_every_licence_has_a_text(self):
        for file in (self.folder / "licences").iterdir():
            self.assertRegex(file.read_text(errors="replace"), "(?i)copyright")

    def test_the_libraries_are_those_that_are_needed_and_no_others(self):
        bundled = {p.name for p in (self.folder / "lib/kzero").iterdir()} - {package.MPI}
        files = [self.folder / "bin/kzero", *(self.folder / "lib/kzero" / name for name in bundled)]
        needed = {name for file in files for name in package.read(file)[0]}
        self.assertEqual(bundled, {name for name in needed if not package.SYSTEM.fullmatch(name)})
        self.assertIn("libgomp-kzero.so.1", bundled)
        self.assertIn(package.MPI, needed)

    def test_the_loader_takes_from_outside_only_what_the_system_and_its_mpi_have(self):
        program = self.folder / "bin/kzero"
        found = self.run_it("ldd", program)
        self.assertNotIn("not found", found)
        inside = f"{self.folder}/bin/../lib/kzero/"
        outside = {name for name, path in re.findall(r"(\S+) => (\S+)", found) if not path.startswith(inside)}
        of_mpi = set(re.findall(r"(\S+) => ", self.run_it("ldd", self.folder / "lib/kzero" / package.MPI)))
        self.assertEqual({name for name in outside - of_mpi if not package.SYSTEM.fullmatch(name)}, set())

    def test_a_module_of_mpi_goes_before_debians(self):
        (self.temporary / "module").mkdir()
        shutil.copy(self.folder / "lib/kzero" / package.MPI, self.temporary / "module" / package.MPI)
        found = self.run_it("ldd", self.folder / "bin/kzero", LD_LIBRARY_PATH=str(self.temporary / "module"))
        self.assertIn(f"{package.MPI} => {self.temporary}/module/{package.MPI}", found)

    def test_the_first_command_of_its_README_trains(self):
        (command,) = re.findall(r"mpiexec -n 2 (bin/kzero .*)", (self.folder / "README").read_text())
        settings = "train.steps=3 optimizer.warmup=1 run.metrics='' checkpoint.folder=" + str(self.temporary / "saved")
        launch = f"cd {self.folder} && {' '.join(LAUNCHER)} 2 {command} {settings}"
        self.assertIn("completed after 3 of 3 steps", self.run_it("bash", "-c", launch))

    def test_what_is_too_new_is_named_with_its_symbols(self):
        (problem, *_) = package.problems_of(self.folder, ANY | {"GLIBC": "2.33"})
        self.assertRegex(problem, r"^bin/kzero needs GLIBC_2.34 for .*\b__libc_start_main\b.*; allowed is GLIBC_2.33$")
        self.assertEqual(package.problems_of(self.folder, ANY), [])

    def test_versions_are_compared_by_their_numbers(self):
        self.assertTrue(package.is_below("2.4", "2.34"))
        self.assertTrue(package.is_below("2.34", "2.34"))
        self.assertTrue(package.is_below("2.2.5", "2.34"))
        self.assertFalse(package.is_below("2.36", "2.34"))
        self.assertFalse(package.is_below("3.4.30", "3.4.29"))

    def test_a_library_that_is_missing_is_named(self):
        folder = self.copy()
        (gomp,) = (folder / "lib/kzero").iterdir()
        gomp.unlink()
        problems = package.problems_of(folder, ANY)
        self.assertIn(f"bin/kzero needs {gomp.name}, which is neither the system's nor in lib/kzero", problems)

    def test_a_search_path_of_the_build_is_named(self):
        folder = self.copy()
        subprocess.run(["patchelf", "--set-rpath", "$ORIGIN:/somewhere/lib", folder / "bin/kzero"], check=True)
        self.assertIn("bin/kzero looks for libraries in /somewhere/lib", package.problems_of(folder, ANY))

    def test_the_same_folder_gives_the_same_tarball(self):
        folder, tarballs = self.copy(), [self.temporary / "one.tar.gz", self.temporary / "two.tar.gz"]
        for tarball in tarballs:
            package.pack(folder, tarball)
            (folder / "bin/kzero").touch()
        self.assertEqual(tarballs[0].read_bytes(), tarballs[1].read_bytes())


if __name__ == "__main__":
    unittest.main()
