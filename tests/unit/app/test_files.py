"""The files of a run: what is said of them before the first step, and what happens when they change. Arguments:
names of test classes; none: all."""

import json
import math
import os
import struct
import unittest
from pathlib import Path

from launch import LaunchTest, steps_of

TOKENIZER = Path(__file__).parents[2] / "data/tokenizer/gpt2/tokenizer.json"


def llmc(tokens, bits=16):
    head, stored = {16: ((20240520, 1), "H"), 32: ((20240801, 7), "I")}[bits]
    return struct.pack("<256i", *head, len(tokens), *[0] * 253) + struct.pack(f"<{len(tokens)}{stored}", *tokens)


class FilesTest(LaunchTest):
    def setUp(self):
        super().setUp()
        (self.folder / "tokens.bin").write_bytes(llmc([i % 300 for i in range(3000)]))

    def check(self, *overrides):
        return self.run_kzero("check", "--files", "deck.toml", *overrides)

    def names(self):
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*"))


class Before(FilesTest):
    """Problems that are there before the first step."""

    def test_all_problems_are_said_at_once_and_nothing_is_left_behind(self):
        (self.folder / "array.bin").write_bytes(b"\x93NUMPY\x01\x00v\x00")
        before = self.names()
        wrong = (
            "data.files=text,absent.txt,*.jsonl",
            "data.validation_files=array.bin",
            "model.initial=none.safetensors",
            "checkpoint.folder=text/saved",
            "run.metrics=/proc/none/metrics.jsonl",
        )
        texts = (
            "absent.txt: cannot be opened for reading: No such file",
            "*.jsonl: matches no file",
            "array.bin: data.format = \"bytes\", but it looks like a numpy array",
            "none.safetensors: ",
            "checkpoint.folder: text/saved cannot be written (Not a directory, tried in text)",
            "run.metrics: /proc/none/metrics.jsonl cannot be written (",
        )
        checked = self.expect(self.check(*wrong), 4, *texts)
        self.assertEqual(len(checked.stderr.splitlines()), len(texts), checked.stderr)
        for ranks in (1, 2):
            self.assertEqual(self.expect(self.train(*wrong, ranks=ranks), 4, *texts).stderr, checked.stderr)
        self.assertEqual(self.names(), before)

    def test_good_files_are_summed_up_and_left_alone(self):
        before = self.names()
        shown = self.expect(
            self.check(
                "data.validation_fraction=0.1",
                "train.validate_every=5",
                "train.validation_batches=2",
                "checkpoint.folder=a/b/c",
                "run.metrics=d/e",
            ),
            0,
        )
        self.assertEqual(
            shown.stdout,
            "data        4090 tokens in 1 file, 334 sequences, 0.0719 epochs\n"
            "validation  37 sequences\ndeck.toml: no errors, nor in its files\n",
        )
        self.assertEqual(self.names(), before)

    def test_links_are_followed_to_the_file_that_would_be_made(self):
        (self.folder / "good").symlink_to("new")
        (self.folder / "bad").symlink_to("none/new")
        self.expect(self.check("run.metrics=good"), 0)
        said = "run.metrics: bad cannot be written (No such file or directory), tried in none"
        for result in (self.check("run.metrics=bad"), self.train("run.metrics=bad")):
            self.expect(result, 4, said.replace("), tried in none", ", tried in none)"))
        self.assertNotIn("new", self.names())

    def test_every_token_is_looked_at(self):
        wrong = ("data.files=tokens.bin", "data.format=llmc", "model.vocab=299")
        text = "tokens.bin: token 299 (counted from 0) is 299, but model.vocab = 299 allows 0 to 298"
        self.expect(self.check(*wrong), 4, text)
        for ranks in (1, 2):
            self.expect(self.train(*wrong, ranks=ranks), 4, "tokens.bin: token ")
        self.expect(self.check(*wrong[:2], "model.vocab=300"), 0)

    def test_the_first_token_beyond_the_vocabulary_is_the_same_on_all_ranks(self):
        tokens = [70000] * 3001
        (self.folder / "wide.bin").write_bytes(llmc(tokens, 32))
        tokens[1234] = tokens[1999] = tokens[2999] = 151936
        (self.folder / "bad.bin").write_bytes(llmc(tokens, 32))
        wrong = ("data.files=wide.bin,tokens.bin", "data.validation_files=bad.bin", "data.format=llmc", "model.vocab=151936")
        text = (
            "kzero: bad.bin: token 1234 (counted from 0) is 151936, but model.vocab = 151936 allows 0 to 151935; raise "
            "model.vocab to at least 151937 (the rows that model.initial lacks start as the mean of its rows) or use other data\n"
        )
        self.assertEqual(self.expect(self.check(*wrong), 4).stderr, text)
        for ranks in (1, 2, 3):
            self.assertEqual(self.expect(self.train(*wrong, ranks=ranks), 4).stderr, text)
        self.assertFalse((self.folder / "metrics.jsonl").exists(), "it ended before the first step")
        self.expect(self.check(*wrong[:3], "model.vocab=151937"), 0)

    def test_two_checkpoints_have_room(self):
        self.expect(
            self.check("model.hidden=65532", "model.layers=1000"),
            4,
            "checkpoint.folder: saved has room for ",
            "two checkpoints of 562",
        )
        self.expect(self.train("model.hidden=65532", "model.layers=1000", ranks=2), 4, "two checkpoints of 562")

    def test_a_token_file_is_no_bytes(self):
        shown = self.expect(
            self.train("data.files=tokens.bin", ranks=2),
            4,
            "tokens.bin: data.format = \"bytes\", but it looks like a token file of llm.c; set data.format = \"llmc\"",
        )
        self.assertEqual(len(shown.stderr.splitlines()), 1)

    def test_a_tokenizer_that_generate_would_refuse_is_named_first(self):
        tokens = ("data.files=tokens.bin", "data.format=llmc", "model.vocab=768")
        rules = json.loads(TOKENIZER.read_text())
        beside = self.folder / "tokenizer.json"
        for changed, vocab, text in (
            ({}, 768, None),
            ({"normalizer": {"type": "Lowercase"}}, 768, 'tokenizer.json: normalizer is {"type"'),
            ({}, 767, "tokenizer.json: has tokens up to 767, but the model's vocabulary allows 0 to 766"),
        ):
            with self.subTest(text):
                beside.write_text(json.dumps({**rules, **changed}))
                settings = (*tokens[:2], f"model.vocab={vocab}")
                shown = self.expect(self.check(*settings), 4 if text else 0)
                self.assertEqual(shown.stderr.count("kzero generate would refuse it"), 1 if text else 0)
                self.assertIn(text or "", shown.stderr)
                self.expect(self.train(*settings, f"checkpoint.folder={vocab}{len(changed)}"), 0)
        beside.write_text(json.dumps({**rules, "normalizer": {"type": "Lowercase"}}))
        self.expect(self.run_kzero("generate", "7680", "--prompt", "a"), 0)  # the checkpoints keep theirs
        given = ("--tokenizer", beside, "--prompt", "a")
        self.expect(self.run_kzero("generate", "7680", *given), 4, "tokenizer.json: normalizer is ")
        beside.unlink()
        os.mkfifo(beside)
        self.expect(self.check(*tokens), 4, "tokenizer.json: is not a regular file")
        self.expect(self.check("model.vocab=767"), 0)  # bytes have no tokenizer

    def test_special_files_are_refused_at_once(self):
        os.mkfifo(self.folder / "fifo")
        self.expect(self.check("data.files=fifo"), 4, "fifo: is a FIFO, but data must be in regular files")
        self.expect(self.train("data.files=fifo", ranks=2), 4, "fifo: is a FIFO")
        self.expect(self.check("data.files=/dev/zero"), 4, "/dev/zero: is a device")

    def test_brackets_are_no_pattern(self):
        (self.folder / "a1.txt").write_bytes(b"x" * 1000)
        self.expect(self.check("data.files=a[1].txt"), 4, "a[1].txt: cannot be opened")
        (self.folder / "a[1].txt").write_bytes(b"y" * 2000)
        self.assertIn("data        2000 tokens in 1 file", self.expect(self.check("data.files=a[1].txt"), 0).stdout)


class Notes(FilesTest):
    """The header's text about the data."""

    def test_the_start_sums_the_data_up(self):
        shown = self.expect(
            self.train("data.validation_fraction=0.1", "train.validate_every=6", "train.validation_batches=9", ranks=2), 0
        ).stdout
        self.assertIn("\ndata        4090 tokens in 1 file, 334 sequences, 0.0719 epochs\nvalidation  37 sequences\n", shown)
        (start,) = self.metrics("start")
        epochs = start["data"].pop("epochs")
        self.assertAlmostEqual(epochs, 24 / 334)
        self.assertEqual(start["data"], {"files": 1, "tokens": 4090, "sequences": 334, "validation_sequences": 37})
        self.assertNotIn("validat", shown.split("validation  37")[1].split("step 1/6")[0], "nothing repeats itself")

    def test_steps_between_checkpoints_without_a_folder_are_noted(self):
        warning = "warning     checkpoint.every = 3 has no effect: checkpoint.folder is empty"
        for result in (
            self.check("checkpoint.folder=", "checkpoint.every=3"),
            self.train("checkpoint.folder=", "checkpoint.every=3"),
        ):
            self.assertIn(warning, self.expect(result, 0).stdout)
        self.assertFalse((self.folder / "saved").exists())
        self.assertNotIn("warning", self.expect(self.train("checkpoint.every=3"), 0).stdout)

    def test_validation_that_is_hardly_meant_is_noted(self):
        repeats = self.expect(
            self.check("data.validation_fraction=0.1", "train.validate_every=6", "train.validation_batches=10"), 0
        ).stdout
        self.assertIn(
            "train.validation_batches * train.global_batch = 40 sequences, but there are 37; "
            "train.validation_batches = 9 reads each at most once",
            repeats,
        )
        never = self.expect(self.train("data.validation_fraction=0.1", "checkpoint.folder=", "run.metrics="), 0).stdout
        self.assertIn("data.validation_fraction = 0.1 keeps 37 sequences from training, but train.validate_every = 0", never)

    def test_more_threads_than_cores_are_noted(self):
        cores = os.sched_getaffinity(0)
        two = sorted(cores)[:2]
        if len(two) < 2:
            self.skipTest("one core is too few to tell")
        self.addCleanup(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, two)
        quiet = ("checkpoint.folder=", "run.metrics=", "train.steps=1", "optimizer.warmup=0")
        self.assertNotIn("share", self.expect(self.train(*quiet, ranks=2), 0).stdout)
        self.assertIn(
            "2 ranks x 2 threads share 2 cores of node ", self.expect(self.train(*quiet, "run.threads=2", ranks=2), 0).stdout
        )


class Widths(FilesTest):
    """Tokens of 32 bits."""

    def losses(self, files, *overrides, ranks):
        """Steps and validations of a run on llm.c's files, to the last bit."""
        (self.folder / "metrics.jsonl").unlink(missing_ok=True)
        self.expect(
            self.train(
                f"data.files={files}",
                "data.format=llmc",
                "checkpoint.folder=",
                "data.validation_fraction=0.1",
                "train.validate_every=3",
                "train.validation_batches=2",
                *overrides,
                ranks=ranks,
            ),
            0,
        )
        return steps_of(self.folder / "metrics.jsonl"), [r["loss"] for r in self.metrics("validation")]

    def test_no_bit_shows_the_width_of_the_files(self):
        tokens = [i * i % 65536 for i in range(3000)]
        for name, part, bits in (
            ("narrow", tokens, 16),
            ("wide", tokens, 32),
            ("a", tokens[:999], 32),
            ("b", tokens[999:], 16),
        ):
            (self.folder / name).write_bytes(llmc(part, bits))
        for ranks in (1, 2):
            narrow, wide, mixed = (self.losses(f, "model.vocab=65536", ranks=ranks) for f in ("narrow", "wide", "a,b"))
            self.assertEqual(len(narrow[0]), 6)
            self.assertEqual(len(narrow[1]), 2)
            self.assertEqual(wide, narrow)
            self.assertEqual(mixed, narrow)

    def test_tokens_beyond_16_bits_are_trained_on(self):
        tokens = [69999 - i * i % 7 * 1000 for i in range(3000)]
        (self.folder / "wide").write_bytes(llmc(tokens, 32))
        (self.folder / "low_bits").write_bytes(llmc([t % 65536 for t in tokens]))
        vocab = "model.vocab=70000"
        one = self.losses("wide", vocab, ranks=1)
        steps, validations = one
        self.assertAlmostEqual(steps[0][1], math.log(70000), delta=0.1)
        self.assertLess(steps[-1][1], steps[0][1] - 0.1)
        self.assertLess(validations[-1], validations[0])
        self.assertEqual(self.losses("wide", vocab, ranks=2), one)
        self.assertNotEqual(self.losses("low_bits", vocab, ranks=1)[0][0], steps[0], "only 16 bits were looked at")
        split, _ = self.losses("wide", vocab, "grid.tensor=2", "model.heads=2", ranks=2)
        whole, _ = self.losses("wide", vocab, "model.heads=2", ranks=1)
        for a, b in zip(split, whole, strict=True):
            self.assertAlmostEqual(a[1], b[1], delta=1e-4 * b[1])


class Meanwhile(FilesTest):
    """Data that changes under a run."""

    def end_of_run(self, ranks, change):
        """The message of a run that ends with exit code 4 once its data was changed.

        MPICH's mpiexec has been seen to end with 1 although one rank had aborted the launch with 4, about once in a thousand
        launches: the program's part is then asked for again.
        """
        for _ in range(3):
            code, errors = self.run_through(ranks, change)
            if code != 1:
                break
        self.assertEqual(code, 4, errors)
        return errors

    def run_through(self, ranks, change):
        (self.folder / "metrics.jsonl").unlink(missing_ok=True)
        tokens = self.folder / "tokens.bin"
        tokens.write_bytes(llmc([i % 300 for i in range(3000)]))
        launch = self.start("data.files=tokens.bin", "data.format=llmc", "model.vocab=300", "checkpoint.folder=", ranks=ranks)
        change(tokens)
        code = self.finish(launch)
        return code, launch.errors

    def test_a_cut_ends_the_run_with_its_place(self):
        for ranks in (1, 2):
            errors = self.end_of_run(ranks, lambda tokens: os.truncate(tokens, 1024 + 2 * 88))
            self.assertRegex(
                errors,
                r"tokens.bin: token \d+ \(counted from 0\) cannot be read: the file had 7024 bytes when "
                "it was opened and has 1200 now",
            )

    def test_tokens_beyond_the_vocabulary_end_the_run_with_their_place(self):
        def overwrite(tokens):
            with open(tokens, "r+b") as file:
                file.seek(1024)
                file.write(b"\xff\xff" * 3000)

        for ranks in (1, 2):
            self.assertRegex(
                self.end_of_run(ranks, overwrite), r"tokens.bin: token \d+ \(counted from 0\) is 65535, but model.vocab = 300"
            )


if __name__ == "__main__":
    unittest.main(verbosity=2)
