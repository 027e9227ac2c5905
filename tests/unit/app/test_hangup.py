"""SIGHUP, which a terminal sends that is closed, to the commands of the program."""

import errno
import os
import signal
import subprocess
import time
import unittest

from launch import PATIENCE, LaunchTest, ranks_of


class Hangup(LaunchTest):
    def waiting(self, action, ranks=None):
        """A generate that waits for prompts from a pipe, and the pipe's other end. `action` is that of SIGHUP at its start."""
        pipe = self.folder / "prompts"
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
        process = subprocess.Popen(
            self.command(["generate", "saved", "--prompts", "prompts"], ranks),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, action),
        )
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process, self.writer(process, pipe)

    def writer(self, process, pipe):
        """Opens the pipe once the process reads it."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return os.fdopen(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK), "w")
            except OSError as problem:
                self.assertEqual(problem.errno, errno.ENXIO)
            self.assertIsNone(process.poll(), "it ended early")
            self.assertLess(time.monotonic(), end, "it does not read")
            time.sleep(0.02)

    def steps(self):
        return (self.folder / "metrics.jsonl").read_text().count('"event":"step"')

    def test_it_ends_commands_that_save_nothing(self):
        self.expect(self.train(), 0)
        for _ in range(3):
            process, prompts = self.waiting(signal.SIG_DFL)
            process.send_signal(signal.SIGHUP)
            with prompts:
                self.assertEqual(process.wait(PATIENCE), -signal.SIGHUP)
        launch, prompts = self.waiting(signal.SIG_DFL, ranks=3)
        with prompts:
            self.signal_rank(launch, 0, signal.SIGHUP)
            self.assertNotEqual(launch.wait(PATIENCE), 0)
            self.assertFalse(ranks_of(launch))

    def test_nohup_keeps_them(self):
        self.expect(self.train(), 0)
        for _ in range(3):
            process, prompts = self.waiting(signal.SIG_IGN)
            process.send_signal(signal.SIGHUP)
            with prompts:
                prompts.write('{"prompt": "a"}\n{"prompt": "b"}\n')
            self.assertIn("--- prompt 2: b\n", process.communicate(timeout=PATIENCE)[0])
            self.assertEqual(process.returncode, 0)

    def test_a_training_goes_on(self):
        launch = self.start()
        self.signal_rank(launch, 1, signal.SIGHUP)
        steps, end = self.steps(), time.monotonic() + PATIENCE
        while self.steps() < steps + 20:
            self.assertIsNone(launch.poll(), "it ended early")
            self.assertLess(time.monotonic(), end, "it makes no steps")
            time.sleep(0.1)
        self.signal_rank(launch, 1, signal.SIGTERM)
        self.assertEqual(self.finish(launch), 75, launch.errors)


if __name__ == "__main__":
    unittest.main()
