"""The job scripts on a real Slurm of one node. Arguments: names of test classes; none: all."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from one_node_slurm import PATIENCE, EndedTooSoon, OneNodeSlurm, wait_for

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/unit/app"))
from launch import DECK, KZERO, LAUNCHER, arrays_of, records, steps_of  # noqa: E402

SMALL = ("--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1", "--time=10")


class JobTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = OneNodeSlurm(cpus=6)
        cls.addClassCleanup(cls.slurm.stop)

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="kzero_jobs_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.slurm.cancel_all)
        (self.folder / "text").write_bytes(b"".join(b"%d bottles of beer, " % i for i in range(200)))
        (self.folder / "deck.toml").write_text(DECK)

    def submit(self, script, *arguments, options=(), **environment):
        variables = {"KZERO": KZERO, "KZERO_JOBSCRIPTS": str(ROOT / "jobscripts"), **environment}
        return self.slurm(
            "sbatch",
            "--parsable",
            *SMALL,
            *options,
            str(ROOT / "jobscripts" / script),
            *map(str, arguments),
            cwd=self.folder,
            env=variables,
        )

    def output(self, job):
        path = self.folder / f"kzero-{job}.out"
        return path.read_text() if path.exists() else ""

    def metrics(self, event, file="metrics.jsonl"):
        path = self.folder / file
        return records(path, event) if path.exists() else []

    def wait_end(self, job, *states):
        """Waits for one of the states, and shows what the job printed if it is another that does not pass."""
        final = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", *states}
        state = self.slurm.wait_state(job, *final)
        self.assertIn(state, states, self.output(job))
        return self.slurm.facts(job)

    def wait_steps(self, count=3, file="metrics.jsonl"):
        wait_for(f"{count} steps", lambda: len(self.metrics("step", file)) >= count)


class Resubmission(JobTest):
    """A training that its time ends twice, first by the deck's limit, then by Slurm's."""

    STEPS = 800

    def write_deck(self, name, **run):
        model = (
            DECK.replace("layers = 1", "layers = 2")
            .replace("hidden = 12", "hidden = 96")
            .replace("sequence = 11", "sequence = 96")
        )
        settings = "".join(f'{key} = "{value}"\n' for key, value in run.items())
        text = model.replace("steps = 6", f"steps = {self.STEPS}").replace('"saved"', f'"{name}"')
        (self.folder / f"{name}.toml").write_text(text.replace('"metrics.jsonl"', f'"{name}.jsonl"') + settings)

    def uninterrupted(self):
        """Trains without a job. How long it took to begin, and for its steps."""
        self.write_deck("whole")
        begin = time.monotonic()
        subprocess.run(
            [*LAUNCHER, "2", KZERO, "train", "whole.toml"],
            cwd=self.folder,
            check=True,
            timeout=PATIENCE,
            stdout=subprocess.DEVNULL,
        )
        steps = sum(r["seconds"] for r in self.metrics("step", "whole.jsonl"))
        return time.monotonic() - begin - steps, steps

    def stop_twice(self):
        """Two parts of a tenth each leave steps for the third, unless the machine becomes far faster meanwhile."""
        start_up, steps = self.uninterrupted()
        part = start_up + steps / 10
        self.write_deck("parts", wall_limit=f"{part + 1:.2f}s", stop_margin="1s")
        job = self.submit("slurm_cpu.sh", "parts.toml", options=["--time=1", "--signal=USR1@1"])

        self.slurm.wait_restart(job, 1)
        self.write_deck("parts", stop_margin=f"{60 - part - 1:.2f}s")  # 1: from the job's start to the program's
        self.slurm.start_now(job)
        self.slurm.wait_restart(job, 2)
        self.write_deck("parts", stop_margin="1s")
        self.slurm("scontrol", "update", f"JobId={job}", "TimeLimit=10")
        self.slurm.start_now(job)
        self.wait_end(job, "COMPLETED")
        return job

    def test_two_stops_and_restarts_change_no_bit(self):
        for attempt in range(3):
            try:
                job = self.stop_twice()
                break
            except EndedTooSoon:  # the times were measured while the machine was busy, and it no longer is
                if attempt == 2:
                    raise
                for path in (*self.folder.glob("whole*"), *self.folder.glob("parts*"), *self.folder.glob("kzero-*")):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()

        self.assertEqual([r["reason"] for r in self.metrics("end", "parts.jsonl")], ["wall_limit", "wall_limit", "completed"])
        self.assertEqual(
            [r["limit"]["source"] for r in self.metrics("start", "parts.jsonl")],
            ["run.wall_limit", "SLURM_JOB_END_TIME", "SLURM_JOB_END_TIME"],
        )
        self.assertEqual(steps_of(self.folder / "parts.jsonl"), steps_of(self.folder / "whole.jsonl"))
        whole, parts = (arrays_of(self.folder / name / f"step_{self.STEPS:08}") for name in ("whole", "parts"))
        self.assertEqual(whole.keys(), parts.keys())
        self.assertTrue(whole)
        for name in whole:
            self.assertEqual(whole[name].tobytes(), parts[name].tobytes(), name)
        self.assertEqual(re.findall(r"restart (\d)", self.output(job)), ["0", "1", "2"])
        self.assertEqual(re.findall(r"job \d+: exit code (\d+)", self.output(job)), ["75", "75", "0"])


class Stops(JobTest):
    """Ends of a job, and whether it is submitted again."""

    LONG = "train.steps=100000000"

    def test_a_signal_from_slurm_stops_and_submits_again(self):
        job = self.submit("slurm_cpu.sh", "deck.toml", self.LONG)
        self.wait_steps()
        self.slurm("scancel", "--signal=USR1", job)
        self.slurm.wait_restart(job, 1)
        (end,) = self.metrics("end")
        self.assertEqual(end["reason"], "signal")
        self.assertEqual(self.metrics("checkpoint")[-1]["step"], end["steps"])

    def test_a_signal_to_srun_submits_again_whatever_it_ends_with(self):
        job = self.submit("slurm_cpu.sh", "deck.toml", self.LONG)
        self.wait_steps()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "cwd").resolve() == self.folder and (process / "comm").read_text() == "srun\n":
                    os.kill(int(process.name), signal.SIGUSR1)  # SIGTERM would make it kill the ranks
        self.slurm.wait_restart(job, 1)
        (end,) = self.metrics("end")
        self.assertEqual((end["reason"], end["exit_code"]), ("signal", 75))

    def test_an_exit_code_that_the_launcher_loses_counts(self):
        program = self.folder / "loses_codes"
        program.write_text(f'#!/bin/sh\n"{KZERO}" "$@"\nexit 0\n')
        program.chmod(0o755)
        job = self.submit("slurm_cpu.sh", "deck.toml", "run.max_steps=1", KZERO=str(program))
        self.slurm.wait_restart(job, 1)
        self.assertIn("the launcher ended with 0, the program with 75", self.output(job))

    def test_what_an_earlier_job_said_does_not_count(self):
        program = self.folder / "does_not_start"
        program.write_text("#!/bin/sh\nexit 4\n")
        program.chmod(0o755)
        job = self.submit("slurm_cpu.sh", "deck.toml", KZERO=str(program), options=["--hold"])
        (self.folder / f"kzero-{job}.end").write_text('{"exit_code":75}\n')
        self.slurm("scontrol", "release", job)
        self.assertEqual(self.wait_end(job, "FAILED")["ExitCode"], "4:0")

    def test_a_stop_file_stops_for_good(self):
        job = self.submit("slurm_cpu.sh", "deck.toml", self.LONG)
        self.wait_steps()
        (self.folder / f"kzero-{job}.stop").touch()
        facts = self.wait_end(job, "FAILED")
        self.assertEqual((facts["ExitCode"], facts["Restarts"]), ("75:0", "0"))
        (end,) = self.metrics("end")
        self.assertEqual(end["reason"], "stop_file")
        self.assertEqual(self.metrics("checkpoint")[-1]["step"], end["steps"])

    def test_a_cancelled_job_stays_cancelled_and_keeps_a_checkpoint(self):
        job = self.submit("slurm_cpu.sh", "deck.toml", self.LONG)
        self.wait_steps()
        self.slurm("scancel", job)
        self.wait_end(job, "CANCELLED")
        wait_for("a checkpoint", lambda: self.metrics("checkpoint"))
        time.sleep(2)  # a script that still lived would submit it again now
        self.assertEqual(self.slurm.state(job), "CANCELLED")

    def test_a_failed_program_is_not_submitted_again(self):
        for settings, code in ((["train.steps=none"], 2), (["data.files=nowhere"], 4)):
            with self.subTest(settings):
                job = self.submit("slurm_cpu.sh", "deck.toml", *settings)
                facts = self.wait_end(job, "FAILED")
                self.assertEqual((facts["ExitCode"], facts["Restarts"]), (f"{code}:0", "0"), self.output(job))

    def test_a_killed_rank_is_not_submitted_again(self):
        job = self.submit("slurm_cpu.sh", "deck.toml", self.LONG)
        self.wait_steps()
        self.slurm("scancel", "--signal=KILL", f"{job}.0")
        self.assertEqual(self.wait_end(job, "FAILED")["Restarts"], "0")

    def test_restarts_are_limited(self):
        job = self.submit("slurm_cpu.sh", "deck.toml", "run.max_steps=1", KZERO_MAX_RESTARTS="1")
        self.slurm.wait_restart(job, 1)
        self.slurm.start_now(job)
        facts = self.wait_end(job, "FAILED")
        self.assertEqual((facts["ExitCode"], facts["Restarts"]), ("75:0", "1"), self.output(job))


class Submission(JobTest):
    """What sbatch passes on, or does not pass on, changes nothing that the script sets."""

    # Options of srun that a login shell, or a job in which sbatch is called, may leave in the environment.
    LEFT = {
        "SLURM_ARRAY_JOB_ID": "1",
        "SLURM_ARRAY_TASK_ID": "1",
        "SLURM_CPUS_PER_TASK": "5",
        "SLURM_CPU_BIND": "quiet,mask_cpu:0x1",
        "SLURM_CPU_BIND_LIST": "0x1",
        "SLURM_CPU_BIND_TYPE": "mask_cpu:",
        "SLURM_EXCLUSIVE": "1",
        "SLURM_GPUS_PER_TASK": "1",
        "SLURM_MEM_PER_CPU": "1",
        "SLURM_NTASKS_PER_CORE": "3",
        "SLURM_NTASKS_PER_SOCKET": "3",
        "SLURM_MEM_PER_NODE": "1",
        "SLURM_RESTART_COUNT": "100",
        "SLURM_STDOUTMODE": "none",
        "SLURM_TIMELIMIT": "1",
        "SLURM_WORKING_DIR": "/",
        "SLURM_TIME_FORMAT": "relative",
        "SQUEUE_STATES": "PENDING",
        "KZERO_CHAIN": "kzero-20261129-120000-1",
        "SHELLOPTS": "errexit:noclobber",
        "batch": "pbs",
        "first_ranks": "9",
    }

    def setUp(self):
        super().setUp()
        (self.folder / "jobscripts").symlink_to(ROOT / "jobscripts")
        program = self.folder / "build/release/kzero"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/bash\n[[ $1 != train ]] || env >"environment.$SLURM_PROCID"\nexec "{KZERO}" "$@"\n')
        program.chmod(0o755)

    def rank_environment(self):
        return dict(line.split("=", 1) for line in (self.folder / "environment.1").read_text().splitlines() if "=" in line)

    def stops_once(self, *options, settings=("run.max_steps=2",), **environment):
        job = self.submit("slurm_cpu.sh", "deck.toml", *settings, options=options, **environment)
        self.slurm.wait_restart(job, 1)
        (end,) = self.metrics("end")
        self.assertEqual((end["reason"], end["exit_code"]), ("max_steps", 75), self.output(job))
        return job

    def test_ranks_get_the_environment_of_the_script_whatever_is_exported(self):
        for option in ("--export=NONE", "--export=NIL", "--export=OTHER=1"):
            with self.subTest(option):
                job = self.stops_once(option)
                found = self.rank_environment()
                self.assertEqual((found.get("OMP_NUM_THREADS"), found.get("KZERO_JOB")), ("1", job))
                self.slurm("scancel", job)
                (self.folder / "metrics.jsonl").unlink()
                shutil.rmtree(self.folder / "saved")

    def test_leftovers_in_the_environment_change_nothing(self):
        job = self.stops_once(KZERO="build/release/kzero", **self.LEFT)
        found = self.rank_environment()
        self.assertEqual((found["OMP_NUM_THREADS"], found["KZERO_JOB"]), ("1", job))
        self.assertEqual(
            {name for name in self.LEFT if name.startswith(("SLURM_CPU_BIND", "SLURM_NTASKS_PER_"))} & found.keys(), set()
        )
        (start,) = self.metrics("start")
        self.assertEqual((start["grid"]["data"], start["limit"]["source"]), (2, "SLURM_JOB_END_TIME"))
        self.assertIn("stopped by run.max_steps", self.output(job))

    def test_options_of_this_job_stay(self):
        options = ("--mem-per-cpu=1", "--ntasks-per-core=1")
        self.stops_once(*options, KZERO="build/release/kzero", SLURM_MEM_PER_NODE="1", SLURM_NTASKS_PER_SOCKET="3")
        found = self.rank_environment()
        names = ("MEM_PER_CPU", "MEM_PER_NODE", "NTASKS_PER_CORE", "NTASKS_PER_SOCKET")
        self.assertEqual([found.get(f"SLURM_{name}") for name in names], ["1", None, "1", None])

    def test_a_script_within_a_step_does_not_wait_for_its_end(self):
        step = [
            "srun",
            "--nodes=1",
            "--ntasks=1",
            "--cpus-per-task=1",
            "--mpi=none",
            "bash",
            "jobscripts/slurm_cpu.sh",
            "deck.toml",
        ]
        shown = self.slurm(*step, "run.max_steps=2", cwd=self.folder, env={"KZERO": KZERO}, check=False)
        self.assertIn("exit code 75", shown)
        self.assertIn("but Slurm does not submit this job again (", shown)

    def test_a_job_that_may_not_be_requeued_says_so(self):
        job = self.submit("slurm_cpu.sh", "deck.toml", "run.max_steps=2", options=["--no-requeue"])
        self.assertEqual(self.wait_end(job, "FAILED")["ExitCode"], "75:0")
        self.assertRegex(self.output(job), r"but Slurm does not submit this job again \(.+\); submit the same again")
        self.assertNotIn(": submitted again", self.output(job))

    def test_signals_to_the_script_alone_stop_the_ranks(self):
        # as sbatch --signal=B:NAME@60 sends them
        for name in ("USR1", "TERM", "HUP"):
            with self.subTest(name):
                job = self.submit("slurm_cpu.sh", "deck.toml", Stops.LONG)
                self.wait_steps()
                self.slurm("scancel", "--batch", f"--signal={name}", job)
                self.slurm.wait_restart(job, 1)
                self.assertEqual([r["reason"] for r in self.metrics("end")], ["signal"])
                self.slurm("scancel", job)
                (self.folder / "metrics.jsonl").unlink()
                shutil.rmtree(self.folder / "saved")


class Many(JobTest):
    """Jobs that are submitted together."""

    def test_a_sweep_trains_each_line_of_settings(self):
        (self.folder / "rates.txt").write_text(
            "# two rates\noptimizer.lr=1e-3\n\n  # and one more\noptimizer.lr=3e-3 train.seed=5\n"
        )
        job = self.submit(
            "slurm_array.sh",
            "deck.toml",
            "rates.txt",
            "optimizer.schedule=constant",
            "optimizer.min_lr=0",
            options=["--array=1-3"],
        )
        for task, rate in ((1, 1e-3), (2, 3e-3)):
            facts = self.wait_end(f"{job}_{task}", "COMPLETED")
            self.assertEqual(facts["ExitCode"], "0:0")
            folder = self.folder / f"runs/rates/{task}"
            self.assertEqual([r["lr"] for r in records(folder / "metrics.jsonl", "step")][-1], rate)
            self.assertTrue((folder / "checkpoints/step_00000006/manifest.h5").exists())
        self.assertEqual(self.wait_end(f"{job}_3", "FAILED")["ExitCode"], "2:0")  # there is no third line
        self.assertFalse((self.folder / "runs/rates/3").exists())

    def test_one_task_of_a_sweep_is_submitted_again(self):
        # The last task has the number of the whole array for its own, which must not submit all of them again.
        (self.folder / "rates.txt").write_text("train.seed=5\nrun.max_steps=4\n")
        job = self.submit("slurm_array.sh", "deck.toml", "rates.txt", options=["--array=1-2"])
        self.slurm.wait_restart(f"{job}_2", 1)
        self.assertEqual(self.wait_end(f"{job}_1", "COMPLETED")["Restarts"], "0")
        self.slurm.start_now(f"{job}_2")
        self.wait_end(f"{job}_2", "COMPLETED")
        for task, wanted in ((1, [("completed", 6)]), (2, [("max_steps", 4), ("completed", 6)])):
            ends = records(self.folder / f"runs/rates/{task}/metrics.jsonl", "end")
            self.assertEqual([(r["reason"], r["steps"]) for r in ends], wanted)
            starts = records(self.folder / f"runs/rates/{task}/metrics.jsonl", "start")
            self.assertEqual({r["limit"]["source"] for r in starts}, {"SLURM_JOB_END_TIME"})

    def test_the_gpu_scripts_start_one_rank_a_gpu(self):
        # The program is the host's: what is tried here is the script, its options and the launch.
        gpus = ("--gpus-per-node=2", "--ntasks-per-node=2")
        modules = {"BASH_FUNC_module%%": "() { :; }"}
        for script, options in (("slurm_gpu.sh", gpus), ("slurm_cray_amd.sh", (*gpus, "--partition=test", "--account=none"))):
            with self.subTest(script):
                job = self.submit(
                    script,
                    "deck.toml",
                    f"run.metrics={script}.jsonl",
                    "checkpoint.folder=" + script,
                    options=options,
                    **modules,
                )
                self.assertEqual(self.wait_end(job, "COMPLETED")["ExitCode"], "0:0")
                (start,) = self.metrics("start", f"{script}.jsonl")
                self.assertEqual(start["grid"], {"data": 2, "tensor": 1}, self.output(job))

    def chain(self, *settings, **environment):
        variables = {"SBATCH_TIMELIMIT": "10", **environment}
        script = self.folder / "small.sh"
        lines = (ROOT / "jobscripts/slurm_cpu.sh").read_text()
        for option in SMALL:
            lines = re.sub(rf"(?m)^#SBATCH {option.split('=')[0]}=\S+", f"#SBATCH {option}", lines)
        lines = lines.replace("\nbatch=slurm\n", f"\nbatch=slurm\nexport KZERO={KZERO} KZERO_JOBSCRIPTS={ROOT}/jobscripts\n")
        script.write_text(lines)
        shown = self.slurm(
            "bash", str(ROOT / "jobscripts/chain.sh"), "4", str(script), "deck.toml", *settings, cwd=self.folder, env=variables
        )
        return re.findall(r"Submitted batch job (\d+)", shown)

    def test_a_chain_goes_on_until_the_training_is_done(self):
        jobs = self.chain("run.max_steps=4")
        for job, state in zip(jobs, ("FAILED", "COMPLETED", "CANCELLED", "CANCELLED"), strict=True):
            self.wait_end(job, state)
        self.assertEqual([(r["reason"], r["steps"]) for r in self.metrics("end")], [("max_steps", 4), ("completed", 6)])

    def test_a_chain_knows_itself_without_exported_variables(self):
        jobs = self.chain("run.max_steps=4", SBATCH_EXPORT="NONE")
        for job, state in zip(jobs, ("FAILED", "COMPLETED", "CANCELLED", "CANCELLED"), strict=True):
            self.wait_end(job, state)

    def test_a_chain_ends_with_the_first_failure(self):
        jobs = self.chain("data.files=nowhere")
        for job, state in zip(jobs, ("FAILED", "CANCELLED", "CANCELLED", "CANCELLED"), strict=True):
            self.wait_end(job, state)


if __name__ == "__main__":
    unittest.main()
