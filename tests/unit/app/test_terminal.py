"""A run's output on a terminal, in files and in pipes, and which metrics files it accepts. Arguments: names of test classes."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
import unittest

from launch import PATIENCE, LaunchTest

ERASE = b"\r\x1b[J"


class Window:
    """A terminal window with a command in it; what it was sent is kept."""

    def __init__(self, command, columns, folder):
        self.screen, program = pty.openpty()
        self.resize(columns)
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=program,
            stdout=program,
            stderr=program,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(program)
        self.text, self.end = b"", time.monotonic() + PATIENCE

    def resize(self, columns):
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def read_until(self, is_enough=lambda: False):
        """Until the text is enough, or the command has ended."""
        while not is_enough():
            if time.monotonic() > self.end:
                self.process.kill()
                raise TimeoutError(self.text[-2000:])
            try:
                self.text += os.read(self.screen, 65536)
            except OSError:
                break  # the last program has closed its end
        return self

    def close(self):
        os.close(self.screen)
        return self.process.wait(PATIENCE)

    def live_lines(self):
        """The texts drawn where the cursor stays on the line, in order, without a line that is still on its way."""
        return [text.decode() for text in re.findall(rb"(?:^|\n|\x1b\[J)([^\r\n\x1b]+)\r(?!\n)", self.text)]


class Terminal(LaunchTest):
    LONG = ["train.steps=1000000", "run.log_every=100000", "run.stop_file=stop"]

    def window(self, *arguments, columns=80):
        window = Window(self.command(["train", "deck.toml", *arguments], None), columns, self.folder)
        self.addCleanup(lambda: window.process.poll() is None and window.process.kill())
        return window

    def test_one_live_line_keeps_to_a_window_that_is_resized(self):
        window = self.window(*self.LONG)
        for columns, bar in ((80, True), (40, False), (200, True)):
            window.resize(columns)
            seen = len(window.live_lines())
            fits = lambda line: ("[" in line) == bar and (columns < 200 or "MFU" in line)
            window.read_until(lambda: any(map(fits, window.live_lines()[seen:])))
            first = next(i for i, line in enumerate(window.live_lines()) if i >= seen and fits(line))
            more = len(window.live_lines()) + 3
            window.read_until(lambda: len(window.live_lines()) > more)
            for line in window.live_lines()[first:]:
                self.assertLess(len(line), columns, line)
                self.assertRegex(line, r"\d+/1000000  loss \d\.\d{4}  ")
        (self.folder / "stop").touch()
        text = window.read_until().text.decode()
        self.assertEqual(window.close(), 75, text)
        self.assertRegex(text, r"\x1b\[Jcheckpoint after \d+ steps", "lines push the live line down")
        self.assertNotIn("\x1b", text[text.index("memory      used = planned") :], "the live line is gone before the summary")

    def test_elsewhere_lines_are_plain(self):
        alone, launched = (" ".join(self.command(["train", "deck.toml", "checkpoint.folder="], ranks)) for ranks in (None, 2))
        for shown in (
            launched,
            f"{alone} | cat",
            f"{alone} > log; cat log",
            f"x=$({alone}); echo \"$x\"",
            f"TERM=dumb {alone}",
            f"{alone} run.progress=plain",
        ):
            with self.subTest(shown):
                window = Window(["sh", "-c", shown], 80, self.folder)
                text = window.read_until().text.decode()
                self.assertEqual(window.close(), 0, text)
                self.assertEqual(len(re.findall(r"^step \d/6  loss", text, re.M)), 6, text)
                self.assertNotRegex(text, r"\x1b|\r(?!\n)")

    def test_a_live_line_can_be_asked_for(self):
        result = subprocess.run(
            self.command(["train", "deck.toml", "run.progress=live", "checkpoint.folder="], 2),
            cwd=self.folder,
            capture_output=True,
            timeout=PATIENCE,
        )
        self.assertIn(ERASE, result.stdout)

    def test_step_and_memory_lines_fit_80_columns(self):
        for way in ((), ("--verbose",)):
            for line in self.expect(self.train("checkpoint.folder=", *way, ranks=2), 0).stdout.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_the_end_is_short_and_shows_the_loss_last(self):
        shown = self.expect(self.train("checkpoint.folder=", ranks=2), 0).stdout.splitlines()[-5:]
        self.assertRegex(shown[0], r"^memory      used = planned, [\d.]+ KiB a rank; resident at most [\d.]+ MiB$")
        self.assertRegex(shown[1], r"^traffic     counted = expected, [\d.]+ KiB sent a step and rank$")
        self.assertRegex(shown[2], r"^steps of this job ")
        self.assertRegex(shown[3], r"^completed after 6 of 6 steps, ")
        self.assertRegex(shown[4], r"^loss        training \d\.\d{4} in the last step$")
        tables = self.expect(self.train("checkpoint.folder=", "--verbose", ranks=2), 0).stdout
        for text in ("\nmemory of rank ", "\n  beyond the plan", "\ntraffic a step and rank, sent"):
            self.assertIn(text, tables)


class MetricsFile(LaunchTest):
    def test_a_run_from_step_0_leaves_an_earlier_runs_file_alone(self):
        self.expect(self.train("checkpoint.folder="), 0)
        before = (self.folder / "metrics.jsonl").read_bytes()
        again = self.expect(self.train("train.steps=3", ranks=2), 0)
        self.assertIn("an earlier run's metrics are now in metrics.1.jsonl\n", again.stdout)
        self.assertEqual((self.folder / "metrics.1.jsonl").read_bytes(), before)
        self.assertEqual(len(self.metrics("step")), 3)

    def test_a_restart_appends_and_drops_a_line_that_a_crash_cut(self):
        self.expect(self.train("run.max_steps=2", ranks=2), 75)
        with open(self.folder / "metrics.jsonl", "a") as file:
            file.write('{"event":"step","st')
        self.expect(self.train(ranks=2), 0)
        self.assertEqual([r["step"] for r in self.metrics("step")], list(range(6)))
        self.assertEqual([r["first_step"] for r in self.metrics("start")], [0, 2])

    def test_what_is_no_metrics_file_is_refused_before_the_first_step(self):
        os.mkfifo(self.folder / "pipe")
        text = (self.folder / "text").read_bytes()
        for name, reason in (("text", "does not hold metrics"), ("pipe", "is a pipe"), (".", "is a folder")):
            with self.subTest(name):
                result = self.expect(self.train(f"run.metrics={name}", ranks=2), 4, f"run.metrics: {name}", reason)
                self.assertNotIn("step 1/6", result.stdout)
        self.assertEqual((self.folder / "text").read_bytes(), text)
        self.assertFalse((self.folder / "saved").exists())


if __name__ == "__main__":
    unittest.main()
