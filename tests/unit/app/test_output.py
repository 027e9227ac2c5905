"""Standard output that cannot be written: a full disk, a closed descriptor, a reader that has left."""

import os
import signal
import subprocess
import time
import unittest

from launch import PATIENCE, LaunchTest

RATES = ("--tflops", "1", "--bandwidth", "1GB", "--memory-bandwidth", "10GB")
COMMANDS = (
    ["--help"],
    ["check", "--help"],
    ["--version"],
    ["inspect", "saved"],
    ["inspect", "--verify", "saved"],
    ["plan", "deck.toml", *RATES],
    ["plan", "--parameters", "1e9"],
    ["check", "deck.toml"],
    ["check", "--files", "deck.toml"],
    ["defaults"],
    ["defaults", "--reference"],
    ["man"],
    ["completion", "bash"],
    ["evaluate", "saved", "text"],
    ["evaluate", "--json", "saved", "text"],
    ["generate", "saved", "--prompt", "a"],
    ["compare", "saved", "saved", "prompts.jsonl"],
    ["convert", "saved", "hf"],
)
REASONS = {">/dev/full": "No space left on device", ">&-": "Bad file descriptor"}


class OutputTest(LaunchTest):
    def shell(self, arguments, redirection, **options):
        return subprocess.run(
            ["bash", "-c", f'exec "$@" {redirection}', "bash", *self.command(arguments, None)],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            **options,
        )


class Lost(OutputTest):
    def test_a_result_that_is_lost_is_an_error(self):
        self.expect(self.train("checkpoint.folder=saved"), 0)
        (self.folder / "prompts.jsonl").write_text('{"prompt": "a"}\n')
        for redirection, reason in REASONS.items():
            for arguments in COMMANDS:
                with self.subTest(arguments, redirection=redirection):
                    self.expect(self.shell(arguments, redirection), 4, f"standard output cannot be written: {reason}")

    def test_an_earlier_error_keeps_its_code(self):
        self.expect(
            self.shell(["plan", "deck.toml", "--fit", "1KiB", *RATES], ">/dev/full"), 3, "needs more than 1.00 KiB a rank"
        )

    def test_a_training_keeps_its_results_elsewhere(self):
        for redirection in REASONS:
            result = self.expect(self.shell(["train", "deck.toml", f"checkpoint.folder={len(redirection)}"], redirection), 0)
            self.assertEqual(result.stderr, "")

    def test_a_reader_that_has_what_it_wanted_is_none(self):
        for signals, code in ((signal.SIG_DFL, -signal.SIGPIPE), (signal.SIG_IGN, 0)):
            reader, writer = os.pipe()
            os.close(reader)
            result = subprocess.run(
                self.command(["defaults"], None),
                stdout=writer,
                stderr=subprocess.PIPE,
                text=True,
                timeout=PATIENCE,
                restore_signals=False,
                preexec_fn=lambda: signal.signal(signal.SIGPIPE, signals),
            )
            os.close(writer)
            self.assertEqual((result.returncode, result.stderr), (code, ""))


class Closed(OutputTest):
    def test_no_file_of_the_program_takes_the_place_of_a_closed_one(self):
        launch = subprocess.Popen(
            [
                "bash",
                "-c",
                'exec "$@" <&- >&- 2>&-',
                "bash",
                *self.command(["train", "deck.toml", "train.steps=1000000"], None),
            ],
            cwd=self.folder,
        )
        self.addCleanup(lambda: (launch.kill(), launch.wait()))
        metrics, end = self.folder / "metrics.jsonl", time.monotonic() + PATIENCE
        while not (metrics.exists() and metrics.read_text().count('"step"') > 2):
            self.assertIsNone(launch.poll(), "it ended early")
            self.assertLess(time.monotonic(), end, "it did not begin")
            time.sleep(0.02)
        self.assertEqual({os.readlink(f"/proc/{launch.pid}/fd/{n}") for n in range(3)}, {"/dev/null"})
        launch.terminate()
        self.assertEqual(launch.wait(PATIENCE), 75)


if __name__ == "__main__":
    unittest.main()
