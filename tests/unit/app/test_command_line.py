"""Command lines, decks and launches that are not what they should be. Arguments: names of test classes; none: all."""

import json
import os
import subprocess
import time
import unittest
from unittest import mock

from launch import FOR_DEVICES, KZERO, LAUNCHER, PATIENCE, LaunchTest, records

LAUNCHER_VARIABLES = ("PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS")
RATES = ("--tflops", "1", "--bandwidth", "1GB", "--memory-bandwidth", "10GB")


class Mistakes(LaunchTest):
    def test_commands_and_options_name_the_nearest_one(self):
        for arguments, text in (
            (["trian"], "there is no command trian; did you mean train?"),
            (["chekc", "deck.toml"], "there is no command chekc; did you mean check?"),
            (["frobnicate"], "there is no command frobnicate ("),
            ([], "a command is needed: train, check, plan"),
            (["check", "deck.toml", "--rank", "3"], "there is no option --rank; did you mean --ranks?"),
            (["check", "--rank"], "there is no option --rank; did you mean --ranks?"),
            (["train", "deck.toml", "--learning-rate", "1e-3"], "did you mean the deck's key, optimizer.lr=VALUE?"),
            (
                ["train", "deck.toml", "--steps=3"],
                "there is no option --steps; did you mean the deck's key, train.steps=VALUE?",
            ),
            (["inspect", "a", "b"], "kzero inspect a takes no further argument without --sample, found b"),
            (["inspect", "a", "--tensors", "--sample", "1"], "--tensors excludes --sample"),
            (["generate", "a", "--max-new-tokens", "5"], "there is no option --max-new-tokens; did you mean --max-tokens?"),
            (["generate", "a", "--temp=0.5"], "there is no option --temp; did you mean --temperature?"),
            (["generate", "a", "--top_k", "5"], "there is no option --top_k; did you mean --top-k?"),
            (["plan", "deck.toml", "--world-size", "8"], "there is no option --world-size; did you mean --ranks?"),
            (["plan", "deck.toml", "--tensor-parallel-size=2"], "did you mean --tensor?"),
            (["evaluate", "a", "b", "--batch_size", "2"], "there is no option --batch_size; did you mean --batch?"),
            (["generate", "a", "--verify"], "there is no option --verify; did you mean kzero inspect, which has it?"),
            (["train", "deck.toml", "--ranks=4"], "did you mean kzero check or kzero plan, which have it?"),
            (["check"], "deck is required (kzero check --help says more)"),
        ):
            with self.subTest(arguments):
                self.expect(self.run_kzero(*arguments), 2, text)

    def test_the_version_has_a_short_option(self):
        self.assertEqual(self.expect(self.run_kzero("-v"), 0).stdout, self.run_kzero("--version").stdout)

    def test_decks_that_cannot_be_read_have_their_reason(self):
        (self.folder / "folder").mkdir()
        for command in ("check", "plan", "train"):
            self.expect(
                self.run_kzero(command, "dekc.toml"),
                2,
                "dekc.toml: the deck cannot be read: No such file",
                "did you mean deck.toml?",
            )
            self.expect(self.run_kzero(command, "folder"), 2, "folder: the deck cannot be read: it is a directory")
            self.expect(self.run_kzero(command, "/dev/full"), 2, "/dev/full: the deck cannot be read: it is neither")
        self.expect(self.run_kzero("check", "text/deck.toml"), 2, "Not a directory")

    def test_a_rule_that_an_override_breaks_is_blamed_on_the_command_line(self):
        result = self.expect(
            self.run_kzero("check", "deck.toml", "model.heads=5"), 2, "command line: 'model.heads=5': model.hidden must be"
        )
        self.assertNotIn("deck.toml:", result.stderr)

    def test_numbers_may_be_written_as_others_write_them(self):
        overrides = ("train.steps=1e3", "model.layers=4.0", "zero.bucket=32MB")
        self.expect(self.run_kzero("check", "deck.toml", *overrides, "--ranks", "4.0"), 0)
        self.expect(self.run_kzero("check", "deck.toml", "train.steps=1.5"), 2, "must be an integer")
        counts = [
            json.loads(self.expect(self.run_kzero("plan", "--parameters", text, "--ranks", "1e2,4.0", "--json"), 0).stdout)
            for text in ("7B", "7e9")
        ]
        self.assertEqual(counts[0], counts[1])
        self.assertEqual({p["ranks"] for p in counts[0]}, {100, 4})
        for option in (("--parameters", "7X"), ("--parameters", "1e9B"), ("--fit", "1GB", "--ranks", "1.5")):
            self.expect(self.run_kzero("plan", *option), 2, "must be")

    def test_eps_that_is_0_in_fp32_is_refused(self):
        self.expect(self.train("optimizer.eps=1e-50"), 2, "optimizer.eps = 1e-50 rounds to 0 in fp32")


class Pipes(LaunchTest):
    def test_a_deck_may_be_a_pipe_which_is_read_once(self):
        for command, ranks in (("check", None), ("plan", None), ("train", None), ("train", 2)):
            pipe = self.folder / f"{command}{ranks}.pipe"
            os.mkfifo(pipe)
            with self.subTest(command=command, ranks=ranks):
                writer = subprocess.Popen(["cp", self.folder / "deck.toml", pipe])
                self.expect(self.run_kzero(command, pipe, "checkpoint.folder=", "run.metrics=", ranks=ranks), 0)
                self.assertEqual(writer.wait(PATIENCE), 0)

    def test_a_substituted_process_is_a_deck(self):
        done = subprocess.run(
            ["bash", "-c", f"{KZERO} check <(cat deck.toml) && cat deck.toml | {KZERO} check /dev/stdin"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.assertEqual((done.returncode, done.stdout.count("no errors")), (0, 2), done.stderr)


class Launches(LaunchTest):
    def train_unequally(self, *commands):
        command = list(LAUNCHER[:1])
        for ranks, arguments in commands:
            command += [*([":"] if len(command) > 1 else []), *LAUNCHER[1:], str(ranks), KZERO, "train", *arguments]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)

    def test_ranks_with_different_decks_do_not_begin(self):
        (self.folder / "other.toml").write_text((self.folder / "deck.toml").read_text())
        for changed in ("optimizer.lr=0.5", "train.seed=2", "zero.stage=3", "model.init_std=0.5", "data.order=sequential"):
            key = changed.split("=")[0]
            self.expect(
                self.train_unequally((1, ["deck.toml"]), (1, ["deck.toml", changed])),
                2,
                "the ranks of this launch have different decks",
                f"rank 1 has {key} = ",
            )
        self.expect(self.train_unequally((1, ["deck.toml"]), (1, ["other.toml"])), 2, "rank 1 has the deck other.toml")
        self.expect(
            self.train_unequally((2, ["deck.toml"]), (2, ["deck.toml", "train.seed=3"])),
            2,
            "rank 2 has train.seed = 3",
            "2 of 4 ranks, 2, 3",
        )
        self.assertFalse((self.folder / "metrics.jsonl").exists())
        self.expect(self.train_unequally((1, ["deck.toml", "train.seed=2"]), (1, ["deck.toml", "train.seed=2"])), 0)

    def test_ranks_that_name_another_model_config_do_not_begin(self):
        for name, heads in (("one", 2), ("two", 3)):
            (self.folder / f"{name}.json").write_text(
                json.dumps(
                    {"model_type": "gpt2", "n_head": heads, "n_layer": 1, "n_embd": 12, "n_positions": 11, "vocab_size": 256}
                )
            )
        (self.folder / "bare.toml").write_text("".join((self.folder / "deck.toml").read_text().partition("[train]")[1:]))
        one, two = (["bare.toml", f"model.config={name}.json"] for name in ("one", "two"))
        self.expect(self.train_unequally((1, one), (1, two)), 2, "rank 1 has model.config = two.json, rank 0 one.json")
        self.expect(self.train_unequally((1, ["bare.toml"]), (1, two)), 2, "rank 1 has model.config = two.json, rank 0 none")
        self.expect(
            self.train_unequally((1, one), (1, ["bare.toml"])),
            2,
            "the ranks of this launch have different decks: rank 1 has model.",
        )
        self.assertFalse((self.folder / "metrics.jsonl").exists())
        self.expect(self.train_unequally((1, one), (1, one)), 0)

    def test_another_mpis_launcher_is_refused(self):
        for variables, named in (
            ({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"}, "OMPI_COMM_WORLD_SIZE=4"),
            ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}, "SLURM_STEP_NUM_TASKS=2"),
            ({"PMIX_RANK": "3"}, "rank 3 on "),
        ):
            with self.subTest(variables), mock.patch.dict(os.environ, variables):
                result = self.train()
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(named, result.stderr)
                self.assertFalse((self.folder / "metrics.jsonl").exists())
                self.expect(self.run_kzero("check", "deck.toml"), 0)  # needs no launch

    def test_a_batch_script_may_train_without_a_launcher(self):
        with mock.patch.dict(os.environ, SLURM_NTASKS="4", SLURM_PROCID="0", SLURM_JOB_ID="7"):
            self.expect(self.train(), 0)
        with mock.patch.dict(os.environ, SLURM_STEP_NUM_TASKS="2"):  # as for mpiexec's proxies, one per node
            self.expect(self.train(ranks=2), 0)
            self.expect(self.train(ranks=1), 0)

    def test_threads_that_cannot_be_started_are_refused(self):
        for value in ("100000", "many", "0"):
            for arguments in (("train", "deck.toml"), ("train", "deck.toml", "run.threads=1"), ("plan", "deck.toml")):
                if FOR_DEVICES and arguments[0] == "plan":
                    continue  # that build measures nothing
                with self.subTest((value, *arguments)), mock.patch.dict(os.environ, OMP_NUM_THREADS=value):
                    self.expect(self.run_kzero(*arguments), 2, "OMP_NUM_THREADS must be a number of threads")
        with mock.patch.dict(os.environ, OMP_NUM_THREADS="1,4"):
            self.expect(self.train(ranks=2), 0)
        self.assertEqual(records(self.folder / "metrics.jsonl", "start")[0]["threads"], 1)
        self.expect(self.train("run.threads=10000"), 2, "run.threads must be at most")


class HugePlans(LaunchTest):
    def test_counts_beyond_64_bits_are_one_error(self):
        huge = ("model.layers=10000", "model.hidden=100000", "model.heads=1000", "model.sequence=1000000")
        self.expect(
            self.run_kzero("plan", "deck.toml", *huge, "train.global_batch=1e6", "train.micro_batch=1e6", *RATES),
            3,
            "256.00 PiB",
        )
        self.expect(
            self.run_kzero("plan", "deck.toml", *huge[:3], "train.global_batch=1e6", "--ranks", "2", *RATES), 2, "a step"
        )
        valid = json.loads(self.expect(self.run_kzero("plan", "deck.toml", *huge[:3], "--json", *RATES), 0).stdout)
        self.assertGreater(valid[0]["total_bytes"], 1e16)
        fit = self.expect(
            self.run_kzero("plan", "deck.toml", "model.hidden=1e5", "model.heads=1e3", "--fit", "1e15B", *RATES), 0
        )
        self.assertNotIn("-", fit.stdout.replace("e-", ""))

    def test_the_longest_schedules_are_planned_soon(self):
        begin = time.monotonic()
        for prefetch in (1, 10000):
            self.expect(
                self.run_kzero(
                    "plan",
                    "deck.toml",
                    "model.layers=10000",
                    "zero.stage=3",
                    f"zero.prefetch_units={prefetch}",
                    "--ranks",
                    "4",
                    *RATES,
                ),
                0,
            )
        self.assertLess(time.monotonic() - begin, PATIENCE)

    @unittest.skipIf(FOR_DEVICES, "rates are not measured")
    def test_measuring_rates_takes_little_memory_whatever_the_deck(self):
        self.expect(self.run_kzero("plan", "deck.toml", "model.hidden=1e5", "model.heads=1", "model.feed_forward=1e6"), 0)


class Completion(LaunchTest):
    def complete(self, *words):
        """The words that bash offers for the last word. It cuts words at '=' itself."""
        script = (
            'source <("$KZERO" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _kzero; '
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", script, "bash", "kzero", *words], cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return set(done.stdout.split())

    def test_commands_options_decks_keys_and_values(self):
        self.assertLessEqual({"train", "check", "plan", "inspect", "convert", "completion", "--help", "-v"}, self.complete(""))
        self.assertEqual(self.complete("tr"), {"train"})
        self.assertLessEqual({"--ranks", "--help"}, self.complete("check", "--"))
        self.assertEqual(self.complete("train", "de"), {"deck.toml"})
        self.assertEqual(self.complete("train", "tex"), set())
        self.assertEqual(self.complete("train", "deck.toml", "zero.st"), {"zero.stage="})
        self.assertEqual(self.complete("train", "deck.toml", "train.precision", "=", "b"), {"bf16"})
        self.assertEqual(self.complete("train", "deck.toml", "checkpoint.resume", "="), {"true", "false"})
        self.assertEqual(self.complete("check", "deck.toml", "data.files", "=", "tex"), {"text"})
        self.assertEqual(self.complete("convert", "a", "b", "--deck", ""), {"deck.toml"})
        self.assertEqual(self.complete("convert", "a", "b", "--deck", "deck.toml", "--set", "model.la"), {"model.layers="})
        self.assertEqual(self.complete("convert", "a", "b", "--dtype", "b"), {"bfloat16"})
        self.assertEqual(self.complete("defaults", "--config", "tex"), {"text"})

    def test_other_shells_are_refused(self):
        self.expect(self.run_kzero("completion", "tcsh"), 2, "tcsh")


def setUpModule():
    """A test of launchers must not meet one."""
    for name in LAUNCHER_VARIABLES:
        os.environ.pop(name, None)


if __name__ == "__main__":
    unittest.main()
