"""The template of a machine and the scripts for PBS and Flux, without a cluster: their syntax, what they name, and jobs under stand-ins for the
batch systems' commands. The Slurm ones run in test_jobs.py."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import batch_stand_ins

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/unit/app"))
from launch import DECK, KZERO, LAUNCHER, PATIENCE, records  # noqa: E402

SCRIPTS = sorted((ROOT / "jobscripts").rglob("*.sh"))
PROFILES = sorted((ROOT / "jobscripts/machines").glob("*.env"))
# Variables that one file sets and another that sources it reads, which shellcheck does not follow.
ACROSS_FILES = "SC1090,SC1091,SC2034,SC2154"


class Files(unittest.TestCase):
    def test_shellcheck_has_nothing_to_say(self):
        others = [path for name in ("cmake", "input", "tests") for path in (ROOT / name).rglob("*.sh")] + [
            *(path for path in (ROOT / ".ci").iterdir() if path.suffix != ".py")
        ]
        command = [
            "shellcheck",
            "--shell=bash",
            "--severity=warning",
            f"--exclude={ACROSS_FILES}",
            *SCRIPTS,
            *PROFILES,
            *others,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_bash_reads_every_script(self):
        for path in (*SCRIPTS, *PROFILES):
            done = subprocess.run(["bash", "-n", path], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stderr), (0, ""), path)

    def test_every_profile_says_at_its_head_that_it_has_not_run_there(self):
        self.assertEqual([path.name for path in PROFILES], ["cluster.env", "slingshot_nccl.env"])
        for path in (*PROFILES, *(ROOT / "jobscripts/machines").glob("*.sh")):
            head = re.match(r"(?:#.*\n)+", path.read_text()).group()
            self.assertRegex(
                head, r"[Nn]ot (been )?tested (there|at\s+(# )?a centre)|Tested only with (a stand-in|stand-ins) ", path
            )

    def test_profiles_and_their_scripts_are_in_the_documentation(self):
        text = (ROOT / "docs/machines.md").read_text()
        for path in (ROOT / "jobscripts/machines").iterdir():
            self.assertIn(path.name, text)


class WithoutSlurm(unittest.TestCase):
    def test_a_slurm_script_run_by_hand_says_how_to_submit_it(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        script = ROOT / "jobscripts/slurm_cpu.sh"
        done = subprocess.run(
            ["bash", script, "my.toml", "train.steps=3"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(f"this is not a Slurm job; submit it: sbatch {script} my.toml train.steps=3.", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)


class Container(unittest.TestCase):
    TEXT = (ROOT / "jobscripts/containers/kzero.def").read_text()

    def section(self, name):
        return re.findall(rf"(?m)^%{name}.*\n((?:(?: .*)?\n)+)", self.TEXT)

    def test_bash_reads_every_section(self):
        for name, count in (("setup", 1), ("post", 2), ("environment", 1), ("runscript", 1), ("test", 1)):
            bodies = self.section(name)
            self.assertEqual(len(bodies), count, name)
            for body in bodies:
                done = subprocess.run(["bash", "-n"], input=body, capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual((done.returncode, done.stderr), (0, ""), body)

    def test_what_it_names_is_there(self):
        presets = {p["name"] for p in json.loads((ROOT / "CMakePresets.json").read_text())["buildPresets"]}
        named = re.findall(r"--preset (\w+)", self.TEXT)
        self.assertTrue(named)
        self.assertLessEqual(set(named), presets)
        files = re.findall(r"bash ([\w/.]+\.sh)", self.TEXT) + re.findall(r"/opt/kzero/share/kzero/([\w/.]+)", self.TEXT)
        self.assertGreaterEqual(len(files), 3)
        for name in files:
            self.assertTrue((ROOT / name.rstrip("/")).exists(), name)
        for option in re.findall(r"-D(KZERO_\w+)", self.TEXT):
            self.assertRegex((ROOT / "CMakeLists.txt").read_text(), rf"option\({option} ")

    def test_its_python_modules_are_those_of_the_tests(self):
        named = re.findall(r"\b(\w+==[\d.]+)", self.TEXT)
        installed = re.search(
            r"attempt pip_install 'import jinja2[^']*' \\\n(.*)", (ROOT / "cmake/debian.sh").read_text()
        ).group(1)
        self.assertEqual(named, installed.split())

    def test_its_own_test_passes_with_this_build(self):
        """%test, with paths of the image replaced by those of the tree."""
        (body,) = self.section("test")
        body = body.replace("/opt/kzero/share/kzero", str(ROOT)).replace("mpiexec -n", " ".join(LAUNCHER))
        body = re.sub(r"export PATH=\S+", f"export PATH={Path(KZERO).parent}:$PATH", body)
        done = subprocess.run(["bash"], input=body, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("completed after 3 of 3 steps", done.stdout)


class Build(unittest.TestCase):
    def build(self, *arguments, **variables):
        """build.sh with a cmake that notes how it was called, and a module command that does."""
        folder = tempfile.TemporaryDirectory(prefix="kzero_build_")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "build/release").mkdir(parents=True)
        (self.folder / "build/cuda").mkdir()
        for preset in ("release", "cuda"):
            (self.folder / f"build/{preset}/kzero").symlink_to(KZERO)
        cmake = self.folder / "cmake"
        cmake.write_text('#!/bin/bash\nprintf "%s\\n" "$*" >>calls\n')
        cmake.chmod(0o755)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KOKKOS_")}
        environment |= {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "BASH_FUNC_module%%": '() { echo "module $*" >>calls; }',
            **variables,
        }
        done = subprocess.run(
            ["bash", ROOT / "jobscripts/machines/build.sh", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        calls = self.folder / "calls"
        return done, calls.read_text().splitlines() if calls.exists() else []

    def profile(self, preset=""):
        """The template as a site with NVIDIA GPUs changes it, or, without a preset, as it is."""
        text = (ROOT / "jobscripts/machines/cluster.env").read_text()
        if preset:
            for old, new in (
                ("# preset=cuda\n", f"preset={preset}\n"),
                ("# module load", "module load"),
                ("# source \"$(dirname", "source \"$(dirname"),
                ("-DKokkos_ARCH_NATIVE=ON", "-DKokkos_ENABLE_CUDA=ON -DKokkos_ARCH_AMPERE80=ON"),
                ("cmake_options=()", "cmake_options=(-DCMAKE_CXX_COMPILER=CC)"),
            ):
                self.assertEqual(text.count(old), 1, old)
                text = text.replace(old, new)
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copy(ROOT / "jobscripts/machines/slingshot_nccl.env", folder)
        (folder / "site.env").write_text(text)
        return folder / "site.env"

    def test_a_profile_builds_with_its_options_where_the_job_scripts_look(self):
        for preset, options in (("", ""), ("cuda", "-DCMAKE_CXX_COMPILER=CC")):
            with self.subTest(preset):
                done, calls = self.build(self.profile(preset), "-DMORE=1", KOKKOS_ROOT="/kokkos", KZERO_LIBRARIES="/a;/b")
                self.assertEqual(done.returncode, 0, done.stderr)
                configured, built = [line for line in calls if not line.startswith("module")]
                preset = preset or "release"
                self.assertIn(f"-S . -B build/{preset} ", configured)
                self.assertIn("-DKokkos_ROOT=/kokkos -DCMAKE_PREFIX_PATH=/a;/b", configured)
                self.assertTrue(configured.endswith(f"{options} -DMORE=1"))
                self.assertEqual(built, f"--build build/{preset} --parallel 8")
                self.assertEqual("module load gcc cmake mpich hdf5/parallel" in calls, preset == "cuda")

    def test_kokkos_is_built_first_with_the_profiles_options(self):
        with tempfile.TemporaryDirectory() as source:
            (Path(source) / "CMakeLists.txt").touch()
            done, calls = self.build(self.profile("cuda"), KOKKOS_SOURCE=source)
        self.assertEqual(done.returncode, 0, done.stderr)
        kokkos = next(line for line in calls if line.startswith("-S /"))
        for option in ("-DKokkos_ARCH_AMPERE80=ON", "-DKokkos_ENABLE_CUDA=ON", "-DCMAKE_CXX_COMPILER=CC"):
            self.assertIn(option, kokkos)
        self.assertTrue(any(f"-DKokkos_ROOT={self.folder}/build/kokkos-cuda" in line for line in calls))

    def test_a_missing_kokkos_or_profile_is_said(self):
        done, calls = self.build(ROOT / "jobscripts/machines/cluster.env")
        self.assertEqual((done.returncode, calls), (2, []))
        self.assertIn("KOKKOS_SOURCE", done.stderr)
        self.assertEqual(self.build("nowhere.env")[0].returncode, 2)


class StandInTest(unittest.TestCase):
    """A training of six steps in a folder whose name has a blank, on a batch system of stand-ins."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="kzero machine_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "text").write_bytes(b"".join(b"%d bottles of beer, " % i for i in range(200)))
        (self.folder / "deck.toml").write_text(DECK)
        self.state, tools = self.folder / "state", self.folder / "tools"
        for folder in (self.state, tools):
            folder.mkdir()
        for name in ("qsub", "qstat", "flux"):
            tool = tools / name
            tool.write_text(f'#!/bin/bash\nexec "{sys.executable}" -B "{ROOT}/tests/jobs/batch_stand_ins.py" {name} "$@"\n')
            tool.chmod(0o755)
        for name in ("KZERO_SCRIPT", "PBS_JOBID", "SLURM_JOB_END_TIME", "KZERO_JOB_END_TIME"):
            os.environ.pop(name, None)
        os.environ |= {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "STAND_IN": str(self.state),
            "KZERO_MPIEXEC": " ".join(LAUNCHER),
            "KZERO_JOBSCRIPTS": str(ROOT / "jobscripts"),
        }
        batch_stand_ins.STATE = self.state

    def submit(self, script, *arguments, **variables):
        """Submits a copy whose lines are those of a site with nodes of two cores."""
        text = (ROOT / "jobscripts/machines" / script).read_text()
        copy = self.folder / script
        copy.write_text(text.replace("\nranks_per_node=4 ", "\nranks_per_node=2 ").replace("\nthreads=8 ", "\nthreads=1 "))
        return subprocess.run(
            ["bash", copy, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, **variables},
        )

    def run_all(self):
        """[(exit code, output)] of the jobs, one after the other, until none waits."""
        done = []
        while result := batch_stand_ins.run_next(PATIENCE):
            done.append(result[1:])
            self.assertLess(len(done), 10)
        return done

    def jobs(self):
        return [json.loads(path.read_text()) for path in batch_stand_ins.jobs()]

    def ends(self):
        return [(r["reason"], r["steps"]) for r in records(self.folder / "metrics.jsonl", "end")]

    def check_restart(self, script, **variables):
        submitted = self.submit(script, "deck.toml", "run.max_steps=4", "checkpoint.folder=a folder", KZERO=KZERO, **variables)
        self.assertEqual(submitted.returncode, 0, submitted.stderr)
        before = time.time()
        (code1, first), (code2, second) = self.run_all()
        self.assertEqual((code1, code2), (75, 0), first + second)
        self.assertEqual(self.ends(), [("max_steps", 4), ("completed", 6)])
        self.assertIn("continues as job", first)
        self.assertIn(f"restart 1 on {socket.gethostname()}", second)
        for start in records(self.folder / "metrics.jsonl", "start"):
            self.assertEqual(start["limit"]["source"], "KZERO_JOB_END_TIME")
            self.assertAlmostEqual(start["limit"]["seconds_left"], 3600, delta=5 + time.time() - before)
            self.assertEqual(start["grid"], {"data": 2, "tensor": 1})
        self.assertEqual(list(self.folder.glob("kzero-*.end")), [])

    def check_refusals(self, script):
        self.submit(script, "deck.toml", "data.files=nowhere", KZERO=KZERO)
        ((code, _),) = self.run_all()  # a failure is not submitted again
        self.assertEqual(code, 4)
        self.submit(script, "deck.toml", "run.max_steps=1", KZERO=KZERO, KZERO_MAX_RESTARTS="1")
        self.assertEqual([code for code, _ in self.run_all()], [75, 75])
        number = len(self.jobs()) + 1
        self.submit(script, "deck.toml", "run.max_steps=1", KZERO=KZERO)
        self.state.joinpath("refuse").touch()
        ((code, said),) = self.run_all()
        self.assertEqual(code, 75)
        self.assertIn("submit the same again: bash ", said)
        self.assertEqual(len(self.jobs()), number)
        self.assertEqual(self.submit(script).returncode, 2)  # no deck

    def write_tool(self, name, text):
        path = self.folder / "tools" / name
        path.write_text(f"#!/bin/bash\n{text}")
        path.chmod(0o755)
        return path

    def set_hosts(self, *names):
        self.state.joinpath("hosts").write_text(" ".join(names))

    def check_lost_node(self, script, ranks, **variables):
        """The first launch dies with a node. The next one runs on as many ranks as ranks tells."""
        self.set_hosts("one", "two", "three")
        program = self.write_tool(
            "program",
            f"""
[[ $1 == train && $KZERO_LAUNCH == 0 ]] || exec "{KZERO}" "$@"
touch "{self.state}/down_two"
exit 1
""",
        )
        self.submit(script, "deck.toml", "train.global_batch=12", KZERO=str(program), **variables)
        ((code, said),) = self.run_all()
        self.assertEqual(code, 0, said)
        self.assertIn(f"launch 1: {ranks} ranks on 2 of 3 nodes (no answer from two)", said)
        (start,) = records(self.folder / "metrics.jsonl", "start")
        self.assertEqual(start["grid"]["data"], ranks)

    def check_fewer_nodes(self, script, **variables):
        """Restarts on fewer nodes with the same bits, although the default of train.micro_batch depends on the number of ranks."""
        deck = self.folder / "deck.toml"
        deck.write_text(deck.read_text().replace("micro_batch = 1\n", ""))
        self.set_hosts("one", "two", "three")
        self.submit(script, "deck.toml", "run.max_steps=4", "train.global_batch=12", KZERO=KZERO, **variables)
        self.assertEqual(batch_stand_ins.run_next(PATIENCE)[1], 75)
        self.set_hosts("one", "three")
        _, code, said = batch_stand_ins.run_next(PATIENCE)
        self.assertEqual(code, 0, said)
        self.assertIn("resumes bit for bit", said)


class Pbs(StandInTest):
    def hosts_launcher(self):
        """KZERO_MPIEXEC for hosts that are this machine: fails if one of them is down."""
        self.write_tool(
            "on_hosts",
            f"""
mapfile -t hosts <"$1"
cmp -s "$1" "$PBS_NODEFILE" || exit
((${{#hosts[@]}} == $2)) || exit
for host in "${{hosts[@]}}"; do
  [[ ! -e "{self.state}/down_$host" ]] || exit
done
exec env -u PBS_JOBID -u PBS_NODEFILE {' '.join(LAUNCHER)} "${{@:2}}"
""",
        )
        return {"KZERO_MPIEXEC": "on_hosts NODEFILE"}

    def test_a_lost_node_is_left_out(self):
        self.check_lost_node("pbs.sh", 2, **self.hosts_launcher())

    def test_a_restart_on_fewer_nodes_changes_no_bit(self):
        self.check_fewer_nodes("pbs.sh", **self.hosts_launcher())

    def test_a_job_that_stops_in_time_submits_the_next(self):
        self.check_restart("pbs.sh", KZERO_QSUB_OPTIONS="-A project")
        for job in self.jobs():
            self.assertEqual(job["options"], ["-A", "project"])
            self.assertIn(["-l", "walltime=04:00:00"], job["directives"])

    def test_what_is_not_submitted_again(self):
        self.check_refusals("pbs.sh")

    def test_a_host_of_the_job_runs_no_command(self):
        for name in ("x$(touch${IFS}ran)", "-one", "../one"):
            with self.subTest(name):
                self.set_hosts("one", name)
                self.submit("pbs.sh", "deck.toml", KZERO=KZERO)
                ((code, said),) = self.run_all()
                self.assertEqual(code, 2, said)
                self.assertRegex(said, r"^a host of this job is called \S+; expected letters, digits")
                self.assertEqual(list(self.folder.rglob("ran")), [])


class Flux(StandInTest):
    def test_a_lost_node_is_left_out(self):
        self.check_lost_node("flux.sh", 4)
        first, *probes, last = (self.state / "runs").read_text().splitlines()
        self.assertNotIn("--requires", first)
        self.assertEqual(
            sorted(re.search(r"--requires=\S+", probe).group() for probe in probes),
            ["--requires=host:one", "--requires=host:three"],
        )
        self.assertIn("--nodes=2 --ntasks=4 --requires=host:one,three", last)

    def test_a_restart_on_fewer_nodes_changes_no_bit(self):
        self.check_fewer_nodes("flux.sh")

    def test_a_job_that_stops_in_time_submits_the_next_outside_of_itself(self):
        self.check_restart("flux.sh", KZERO_FLUX_OPTIONS="--bank=project")
        for job in self.jobs():
            self.assertEqual(job["options"], ["--bank=project"])
            self.assertIn("--time-limit=4h", job["directives"])

    def test_what_is_not_submitted_again(self):
        self.check_refusals("flux.sh")


if __name__ == "__main__":
    unittest.main()
