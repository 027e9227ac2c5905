"""Every stop ends with a checkpoint, whatever the signal, its target and its moment. Arguments: names of test classes; none: all.

KZERO_STOPS: how many stops (12); KZERO_SEED: of their choices, printed by every run.

The model is large enough for the matrix library's generated code, which uses the stack pointer for data: a signal that is
handled on a computing thread corrupts memory there.
"""

import contextlib
import fcntl
import itertools
import json
import os
import pty
import random
import signal
import subprocess
import termios
import threading
import time
import unittest
from pathlib import Path

from launch import KZERO, LAUNCHER, PATIENCE, LaunchTest, ranks_of, steps_of

STOPS = int(os.environ.get("KZERO_STOPS", "12"))
SEED = int(os.environ.get("KZERO_SEED", str(random.SystemRandom().randrange(10**6))))
MODEL = (
    "model.layers=2",
    "model.hidden=128",
    "model.heads=4",
    "model.sequence=128",
    "model.vocab=256",
    "train.global_batch=12",
    "train.micro_batch=0",
)
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
MOMENTS = {  # what the run is doing most of the time, by overrides
    "steps": (),
    "validation": ("data.validation_fraction=0.2", "train.validate_every=1", "train.validation_batches=4"),
    "checkpoint": ("checkpoint.every=1",),
    "start-up": (),
}
PRODUCTS = ("onednn", "blas")
STOP_LINE = r"stopped by SIG(TERM|INT|USR1) after step \d+ of \d+ with a checkpoint; the same command resumes"


def is_in_mask(pid, mask, number):
    """Whether a process has the signal in a mask of its status, SigBlk or SigIgn."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{mask}:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def takes_signals(pid):
    """Whether the process has got as far as keeping signals out of its threads."""
    return is_in_mask(pid, "SigBlk", signal.SIGTERM)


def has_begun(pid):
    """Whether the process has begun with its run: a pipe that closes no longer ends it."""
    return is_in_mask(pid, "SigIgn", signal.SIGPIPE)


def read_all(descriptor):
    with contextlib.suppress(OSError):  # how a terminal without programs ends
        while data := os.read(descriptor, 4096):
            yield data.decode(errors="replace")


class StopTest(LaunchTest):
    def setUp(self):
        super().setUp()
        (self.folder / "text").write_bytes(b"".join(b"%d bottles of beer on the wall, " % i for i in range(4000)))
        self.saved = self.folder / "saved"

    def begin(self, *overrides, ranks, launcher=LAUNCHER, steps=100000):
        command = [*launcher, str(ranks)] if launcher else []
        out = open(self.folder / "output", "w+")
        self.addCleanup(out.close)
        launch = subprocess.Popen(
            [*command, KZERO, "train", "deck.toml", f"train.steps={steps}", *MODEL, *overrides],
            cwd=self.folder,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(lambda: (launch.kill(), launch.communicate()) if launch.poll() is None else None)
        return launch

    def wait_for(self, launch, what, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertIsNone(launch.poll(), f"it ended before {what}")
            self.assertLess(time.monotonic(), end, f"waited too long for {what}")
            time.sleep(0.01)

    def wait_for_steps(self, launch, count=3):
        metrics = self.folder / "metrics.jsonl"
        self.wait_for(launch, "its steps", lambda: metrics.exists() and metrics.read_text().count('"step"') > count)

    def output(self):
        return (self.folder / "output").read_text()

    def clean(self):
        subprocess.run(["rm", "-rf", self.saved, self.folder / "metrics.jsonl"], check=True)

    def problem_of(self, launch, code_counts=True):
        """The problem with a stop, or an empty text."""
        code = self.finish(launch)
        if code_counts and code != 75:
            return f"exit code {code}: {launch.errors[:300]}"
        with contextlib.suppress(OSError, ValueError):
            told = json.loads((self.saved / "end.json").read_text())
            if (told["exit_code"], told["reason"]) != (75, "signal"):
                return f"end.json says {told}"
            verified = self.run_kzero("inspect", "saved", "--verify")
            if verified.returncode != 0:
                return f"inspect: {verified.stderr[:300]}"
            newest = max(int(p.name[5:]) for p in self.saved.glob("step_*") if p.suffix == "")
            if newest != told["steps"]:
                return f"the newest checkpoint is of step {newest}, not {told['steps']}"
            if code_counts:
                self.assertRegex(self.output().splitlines()[-1], STOP_LINE)
            return ""
        return f"exit code {code} and no end.json: {launch.errors[:300]}"


class Stops(StopTest):
    def test_every_stop_saves(self):
        print(f"KZERO_SEED={SEED} KZERO_STOPS={STOPS}", flush=True)
        draw = random.Random(SEED)
        choices = list(itertools.product(SIGNALS, ("one", "all"), (1, 2), ("fp32", "bf16"), PRODUCTS, MOMENTS))
        draw.shuffle(choices)
        problems = []
        for number, target, ranks, precision, products, moment in itertools.islice(itertools.cycle(choices), STOPS):
            self.clean()
            launch = self.begin(f"train.precision={precision}", f"run.gemm={products}", *MOMENTS[moment], ranks=ranks)
            if moment == "start-up":
                self.wait_for(launch, "all ranks", lambda: len(ranks_of(launch)) == ranks)
                # The run's own start-up; before it nothing is to be saved, and a signal ends the program.
                self.wait_for(launch, "the threads of the run", lambda: all(map(has_begun, ranks_of(launch).values())))
            else:
                self.wait_for_steps(launch)
                time.sleep(draw.uniform(0, 0.1))
            pids = ranks_of(launch)
            for rank in sorted(pids) if target == "all" else [draw.choice(sorted(pids))]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pids[rank], number)
            if problem := self.problem_of(launch):
                problems.append(f"{number.name} to {target} of {ranks}, {precision}, {products}, in {moment}: {problem}")
        print(f"{len(problems)} of {STOPS} stops failed", flush=True)
        self.assertEqual(problems, [])


class Launchers(StopTest):
    """Signals to the launcher, whose exit code then says nothing for sure: end.json does."""

    def test_signals_to_mpiexec(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            with self.subTest(number.name):
                self.clean()
                launch = self.begin("run.end_file=ended.json", ranks=2)
                self.wait_for_steps(launch)
                launch.send_signal(number)
                self.finish(launch)
                told = json.loads((self.folder / "ended.json").read_text())
                self.assertEqual((told["exit_code"], told["reason"], told["signal"]), (75, "signal", number.name))
                self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)
                self.assertTrue((self.saved / f"step_{told['steps']:08}").is_dir())

    def test_ctrl_c_in_a_terminal(self):
        keyboard, terminal = pty.openpty()
        launch = subprocess.Popen(
            self.command(["train", "deck.toml", "train.steps=100000", *MODEL], 2),
            cwd=self.folder,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(terminal, termios.TIOCSCTTY, 0),
        )
        self.addCleanup(lambda: launch.poll() is None and launch.kill())
        os.close(terminal)
        shown = []
        reader = threading.Thread(target=lambda: shown.extend(read_all(keyboard)))
        reader.start()
        self.wait_for_steps(launch)
        os.write(keyboard, b"\x03")
        launch.wait(PATIENCE)
        reader.join()
        os.close(keyboard)
        told = json.loads((self.saved / "end.json").read_text())
        self.assertEqual((told["exit_code"], told["signal"]), (75, "SIGINT"), shown)
        self.assertIn("stopped by SIGINT", "".join(shown))
        self.expect(self.run_kzero("inspect", "saved", "--verify"), 0)

    def test_a_new_run_removes_what_an_old_one_said(self):
        (self.folder / "ended.json").write_text('{"reason":"signal","signal":"SIGTERM","exit_code":75,"steps":3}')
        launch = self.begin("run.end_file=ended.json", ranks=1)
        self.wait_for_steps(launch)
        self.assertFalse((self.folder / "ended.json").exists())
        launch.kill()

    def test_a_rank_whose_launcher_dies_ends(self):
        for ranks in (1, 2):
            self.clean()
            launch = self.begin(ranks=ranks)
            self.wait_for_steps(launch)
            pids = ranks_of(launch).values()
            proxy = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in pids}
            for pid in proxy:
                os.kill(pid, signal.SIGKILL)
            end = time.monotonic() + 30
            while any(Path(f"/proc/{pid}/fd/0").exists() for pid in pids) and time.monotonic() < end:
                time.sleep(0.1)
            left = [pid for pid in pids if Path(f"/proc/{pid}/fd/0").exists()]
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            self.assertEqual(left, [])
            self.finish(launch)


class Storms(StopTest):
    def test_harmless_signals_change_no_bit(self):
        settings = ("train.precision=fp32", "checkpoint.folder=")
        quiet = self.begin(*settings, "run.metrics=quiet.jsonl", ranks=2, steps=40)
        self.assertEqual(self.finish(quiet), 0, quiet.errors)
        launch = self.begin(*settings, ranks=2, steps=40)
        self.wait_for(launch, "all ranks", lambda: len(ranks_of(launch)) == 2)
        pids = list(ranks_of(launch).values())
        self.wait_for(launch, "its threads", lambda: all(map(takes_signals, pids)))
        harmless = (
            signal.SIGWINCH,
            signal.SIGCHLD,
            signal.SIGALRM,
            signal.SIGPROF,
            signal.SIGVTALRM,
            signal.SIGURG,
            signal.SIGIO,
            signal.SIGCONT,
        )
        sent = 0
        while launch.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                for pid in pids:
                    os.kill(pid, harmless[sent % len(harmless)])
                    sent += 1
            time.sleep(0.001)
        self.assertEqual(self.finish(launch), 0, launch.errors)
        print(f"{sent} harmless signals", flush=True)
        self.assertGreater(sent, 1000)
        self.assertEqual(steps_of(self.folder / "metrics.jsonl"), steps_of(self.folder / "quiet.jsonl"))

    def test_stop_signals_until_the_end(self):
        for ranks in (1, 2):
            self.clean()
            launch = self.begin(ranks=ranks)
            self.wait_for_steps(launch)
            pids = ranks_of(launch)
            storm = threading.Thread(target=self.storm, args=(launch, pids.values()))
            storm.start()
            problem = self.problem_of(launch)
            storm.join()
            self.assertEqual(problem, "")

    def storm(self, launch, pids):
        for number in itertools.cycle(SIGNALS):
            if launch.poll() is not None:
                return
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(0.002)


class Suspension(StopTest):
    def test_a_job_that_is_suspended_goes_on(self):
        launch = self.begin("run.watchdog=3s", ranks=2)
        self.wait_for_steps(launch)
        pids = ranks_of(launch).values()
        for number, pause in ((signal.SIGSTOP, 6), (signal.SIGCONT, 0)):
            for pid in pids:
                os.kill(pid, number)
            time.sleep(pause)
        steps = len(self.metrics("step"))
        self.wait_for_steps(launch, steps + 20)
        os.kill(next(iter(pids)), signal.SIGTERM)
        self.assertEqual(self.problem_of(launch), "")


class LoneFailures(StopTest):
    def test_a_rank_that_fails_alone_ends_the_launch_at_once(self):
        for ranks in (2, 3):
            begin = time.monotonic()
            launch = self.begin("run.metrics=/dev/full", ranks=ranks)
            self.assertEqual(self.finish(launch), 4, launch.errors)
            self.assertIn("/dev/full", launch.errors)
            self.assertIn("No space left on device", launch.errors)
            self.assertLess(time.monotonic() - begin, 60)


if __name__ == "__main__":
    unittest.main()
