"""Installs what the environment names (KZERO_BUILD, KZERO_CMAKE) to a prefix of its own and runs it from there."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ["KZERO_BUILD"])
LAUNCHER = os.environ["KZERO_LAUNCHER"].split()


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="kzero_install_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.prefix, cls.work = cls.folder / "prefix", cls.folder / "work"
        cls.work.mkdir()
        subprocess.run(
            [os.environ["KZERO_CMAKE"], "--install", BUILD, "--prefix", cls.prefix], check=True, stdout=subprocess.DEVNULL
        )
        cls.share = cls.prefix / "share/kzero"
        cls.environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}

    def run_here(self, *command):
        result = subprocess.run(
            [str(c) for c in command], cwd=self.work, env=self.environment, capture_output=True, text=True, timeout=200
        )
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def test_decks_scripts_and_documents_are_there(self):
        for name in ("docs", "input", "jobscripts", "postprocess"):

            def files_of(folder):
                return {p.relative_to(folder) for p in folder.rglob("*") if p.is_file() and p.parent.name != "__pycache__"}

            wanted = files_of(ROOT / name) - {Path("quickstart.sh")}  # which builds first
            self.assertTrue(wanted)
            self.assertEqual(files_of(self.share / name), wanted)
        self.assertFalse(list(self.prefix.rglob("*.a")), "the program's own libraries are not an interface")

    def test_libraries_are_found_without_a_library_path_and_outside_the_build(self):
        libraries = self.run_here("ldd", self.prefix / "bin/kzero")
        self.assertIn("libkokkoscore", libraries)
        self.assertNotIn("not found", libraries)
        paths = [line for line in self.run_here("readelf", "-d", self.prefix / "bin/kzero").splitlines() if "PATH" in line]
        self.assertFalse([line for line in paths if str(BUILD) in line], paths)

    def test_the_version(self):
        self.assertIn(os.environ["KZERO_VERSION"], self.run_here(self.prefix / "bin/kzero", "--version"))

    def test_the_quickstart_deck_trains_on_two_ranks_elsewhere(self):
        self.run_here(
            *LAUNCHER,
            "2",
            self.prefix / "bin/kzero",
            "train",
            self.share / "input/quickstart.toml",
            f"data.files={self.share}/docs/*.md",
            "train.steps=3",
            "optimizer.warmup=1",
            "checkpoint.folder=saved",
            "run.metrics=metrics.jsonl",
        )
        events = [json.loads(line) for line in (self.work / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([e["step"] for e in events if e["event"] == "step"], [0, 1, 2])
        self.assertEqual(events[-1]["reason"], "completed")
        self.run_here(self.prefix / "bin/kzero", "inspect", "--verify", "saved")

    def run_shell(self, *command):
        return self.run_here("env", f"PATH={self.prefix}/bin:{os.environ['PATH']}", *command)

    def test_bash_completes_the_installed_program(self):
        completion = self.prefix / "share/bash-completion/completions/kzero"
        self.assertEqual(
            self.run_shell("bash", "-c", f"source {completion}; complete -p kzero").strip(), "complete -F _kzero kzero"
        )

    @unittest.skipUnless(shutil.which("zsh") and shutil.which("fish"), "zsh or fish is not installed")
    def test_zsh_and_fish_complete_the_installed_program(self):
        functions = self.prefix / "share/zsh/site-functions"
        found = self.run_shell(
            "zsh",
            "-f",
            "-c",
            f"fpath=({functions} $fpath); autoload -U compinit; compinit -u -D; "
            "autoload +X _kzero; print $_comps[kzero]; print $functions[_kzero]",
        )
        self.assertEqual(found.splitlines()[0], "_kzero")
        self.assertIn("kzero completion zsh", found)
        script = self.prefix / "share/fish/vendor_completions.d/kzero.fish"
        self.assertIn("inspect\t", self.run_shell("fish", "--no-config", "-c", f"source {script}; complete -C 'kzero insp'"))

    def test_the_manual_page_is_that_of_the_program(self):
        page = self.prefix / "share/man/man1/kzero.1"
        self.assertEqual(page.read_text(), self.run_here(self.prefix / "bin/kzero", "man"))

    def modulefile(self, suffix=""):
        return self.prefix / f"share/modulefiles/kzero/{os.environ['KZERO_VERSION']}{suffix}"

    # What a modulefile sets: paths below the prefix
    SET = {"PATH": "bin", "KZERO_SHARE": "share/kzero", "KZERO_JOBSCRIPTS": "share/kzero/jobscripts"}

    def test_what_the_modulefiles_name_is_there(self):
        lua, tcl = self.modulefile(".lua").read_text(), self.modulefile().read_text()
        self.assertTrue(tcl.startswith("#%Module"))
        for name, path in self.SET.items():
            self.assertRegex(lua, rf'(prepend_path|setenv)\("{name}", pathJoin\(prefix, "{path}"\)\)')
            self.assertRegex(tcl, rf"(?m)^(prepend-path|setenv) {name} \$prefix/{path}$")
            self.assertTrue((self.prefix / path).is_dir())

    @unittest.skipUnless(shutil.which("tclsh"), "tclsh is not installed")
    def test_the_tcl_modulefile_finds_its_prefix(self):
        """With stand-ins for the commands of Environment Modules that it uses."""
        script = self.work / "load.tcl"
        script.write_text(
            "proc module-whatis {text} {}\n"
            'foreach command {prepend-path setenv} { proc $command {name value} { puts "$name $value" } }\n'
            f"set ModulesCurrentModulefile {{{self.modulefile()}}}\nsource $ModulesCurrentModulefile\n"
        )
        shown = dict(line.split(" ", 1) for line in self.run_here("tclsh", script).splitlines())
        self.assertEqual(shown, {name: str(self.prefix / path) for name, path in self.SET.items()})

    def test_scripts_in_python_start_from_path_also_through_a_link(self):
        moved = self.folder / "moved"
        moved.mkdir()
        (moved / "bin").mkdir()
        (moved / "bin/kzero-report").symlink_to(self.prefix / "bin/kzero-report")
        tools = f"{self.prefix}/bin:/usr/bin:{os.environ['PATH']}"  # Debian's Python has matplotlib
        self.assertIn("usage: prepare.py", self.run_here("env", f"PATH={tools}", "kzero-prepare", "--help"))
        for path in (tools, f"{moved}/bin:/usr/bin:{os.environ['PATH']}"):
            self.assertIn("usage: report.py", self.run_here("env", f"PATH={path}", "kzero-report", "--help"))


if __name__ == "__main__":
    unittest.main()
