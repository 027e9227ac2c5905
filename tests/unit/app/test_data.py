"""Formats of token files, blends and evaluations, as a user of the program meets them. Arguments: names of test classes;
none: all."""

import json
import os
import re
import struct
import subprocess
import unittest

from launch import DECK, PATIENCE, LaunchTest, arrays_of, records, steps_of

TOKENS = [i * i % 251 for i in range(3000)]
BLEND = (
    DECK.replace('files = ["text"]', 'format = "raw"')
    + """
[[data.blend]]
name = "large"
files = ["large.bin"]
weight = 0.7

[[data.blend]]
files = ["small_?.bin"]
weight = 0.3

[[evaluate]]
name = "held out"
files = ["held_out.txt"]
format = "bytes"
every = 4

[[evaluate]]
files = ["large.bin"]
batches = 2
"""
)


def raw(tokens):
    return struct.pack(f"<{len(tokens)}H", *tokens)


def index(lengths, code=8, width=2):
    """A Megatron-LM index of documents of one sequence each."""
    offsets = [width * sum(lengths[:i]) for i in range(len(lengths))]
    return (
        b"MMIDIDX\0\0"
        + struct.pack("<QBQQ", 1, code, len(lengths), len(lengths) + 1)
        + struct.pack(f"<{len(lengths)}i", *lengths)
        + struct.pack(f"<{len(lengths)}q", *offsets)
        + struct.pack(f"<{len(lengths) + 1}q", *range(len(lengths) + 1))
    )


class Formats(LaunchTest):
    def steps_on(self, *overrides):
        (self.folder / "metrics.jsonl").unlink(missing_ok=True)
        self.expect(self.train("checkpoint.folder=", *overrides, ranks=2), 0)
        return steps_of(self.folder / "metrics.jsonl")

    def test_the_same_tokens_are_the_same_run_in_every_format(self):
        (self.folder / "tokens.raw").write_bytes(raw(TOKENS))
        (self.folder / "wide.raw").write_bytes(struct.pack(f"<{len(TOKENS)}I", *TOKENS))
        (self.folder / "bytes.txt").write_bytes(bytes(TOKENS))
        (self.folder / "set.bin").write_bytes(raw(TOKENS))
        (self.folder / "set.idx").write_bytes(index([1000, 0, 1999, 1]))
        expected = self.steps_on("data.files=bytes.txt")
        self.assertEqual(len(expected), 6)
        self.assertEqual(self.steps_on("data.files=tokens.raw", "data.format=raw"), expected)
        self.assertEqual(self.steps_on("data.files=wide.raw", "data.format=raw", "data.token_bytes=4"), expected)
        self.assertEqual(self.steps_on("data.files=set.bin", "data.format=megatron"), expected)

    def test_a_dataset_that_is_not_whole_is_refused(self):
        (self.folder / "set.bin").write_bytes(raw(TOKENS)[:-2])
        (self.folder / "set.idx").write_bytes(index([1000, 2000]))
        for ranks in (None, 2):
            shown = self.expect(
                self.train("data.files=set.bin", "data.format=megatron", ranks=ranks),
                4,
                "set.idx: sequence 1 (counted from 0) has 4000 bytes from byte 2000 on, but its .bin "
                "has 5998; one of the two is truncated",
            )
            self.assertEqual(len(shown.stderr.splitlines()), 1)
        self.expect(self.train("data.files=set.bin", "data.format=raw"), 4, "set data.format = \"megatron\"")


class Indexes(LaunchTest):
    """Megatron-LM's .idx that would hang a run, or give it other tokens than were written."""

    MEGATRON = ("data.files=set.bin", "data.format=megatron")

    def refuse(self, text):
        self.expect(self.run_kzero("check", "--files", "deck.toml", *self.MEGATRON), 4, text)
        self.expect(self.train(*self.MEGATRON, "checkpoint.folder=other", ranks=2), 4, text)
        self.expect(self.run_kzero("evaluate", "saved", "set.bin", "--format", "megatron"), 4, text)

    def test_each_command_refuses_them(self):
        self.expect(self.train(), 0)
        (self.folder / "set.bin").write_bytes(raw(TOKENS))
        good = bytearray(index([1000, 0, 1999, 1]))
        for place, pointer in ((2, 1998), (3, 5996), (2, 2002)):  # an overlap, a step backwards, a gap
            bad = bytearray(good)
            struct.pack_into("<q", bad, 34 + 4 * 4 + 8 * place, pointer)
            (self.folder / "set.idx").write_bytes(bad)
            self.refuse(f"set.idx: sequence {place} (counted from 0) begins at byte {pointer}, but must begin at byte")
        (self.folder / "set.idx").unlink()
        os.mkfifo(self.folder / "set.idx")
        self.refuse("set.idx: is a FIFO, but an index must be a regular file")


class Many(LaunchTest):
    """More files than a process may open."""

    def limited(self, *arguments, ranks=None):
        return subprocess.run(
            ["bash", "-c", 'ulimit -n 256 && exec "$@"', "bash", *self.command(arguments, ranks)],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def setUp(self):
        super().setUp()
        (self.folder / "many").mkdir()
        for i in range(1000):
            (self.folder / f"many/{i:03}.txt").write_text(f"{i} bottles of beer")

    def test_they_are_a_run_like_one_file(self):
        self.expect(self.limited("check", "--files", "deck.toml", "data.files=many/*.txt"), 0)
        self.expect(self.limited("train", "deck.toml", "data.files=many/*.txt", ranks=2), 0)
        many = steps_of(self.folder / "metrics.jsonl")
        (self.folder / "metrics.jsonl").unlink()
        (self.folder / "one").write_text("".join(f"{i} bottles of beer" for i in range(1000)))
        self.expect(self.train("data.files=one", "checkpoint.folder=", ranks=2), 0)
        self.assertEqual(steps_of(self.folder / "metrics.jsonl"), many)
        self.expect(self.limited("evaluate", "saved", "many/*.txt"), 0)

    def test_many_bad_ones_are_one_line(self):
        for number, file in enumerate(sorted((self.folder / "many").iterdir())):
            file.write_bytes(bytes(40 if number < 10 else 3))
        result = self.expect(
            self.run_kzero("check", "--files", "deck.toml", "data.files=many/*.txt", "data.format=raw"),
            4,
            "many/010.txt: 3 bytes are not a multiple of the token width, 2 bytes",
            "(and 989 more like this: many/011.txt, many/012.txt, many/013.txt, ...)",
        )
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)


class Blends(LaunchTest):
    def setUp(self):
        super().setUp()
        (self.folder / "deck.toml").write_text(BLEND)
        (self.folder / "large.bin").write_bytes(raw(TOKENS))
        for i in range(2):
            (self.folder / f"small_{i}.bin").write_bytes(raw([100 + i] * 40))
        (self.folder / "held_out.txt").write_bytes(b"neither of the two sources " * 3)

    def test_sources_and_evaluations_are_summed_up_before_the_run(self):
        shown = self.expect(self.run_kzero("check", "--files", "deck.toml"), 0).stdout
        self.assertIn(
            "data        3080 tokens in 3 files, 279 sequences, 0.086 epochs\n"
            "            70 % large: 3000 tokens in 1 file, 272 sequences, 0.0625 epochs\n"
            "            30 % small_?.bin: 80 tokens in 2 files, 7 sequences, 1 epochs\n"
            "evaluation  held out: 81 tokens in 1 file, 7 sequences\n"
            "evaluation  large.bin: 3000 tokens in 1 file, 8 sequences\n",
            shown,
        )

    def test_a_run_evaluates_when_due_and_at_its_end(self):
        shown = self.expect(self.train(ranks=2), 0).stdout
        found = [(r["name"], r["step"], r["tokens"]) for r in self.metrics("evaluation")]
        self.assertEqual(found, [("held out", 4, 77), ("held out", 6, 77), ("large.bin", 6, 88)])
        self.assertRegex(shown, r"evaluation held out after 4 steps: loss \d\.\d{4} over 77 tokens, ")
        (start,) = self.metrics("start")
        self.assertEqual(
            [(s["name"], s["share"], s["files"]) for s in start["data"]["sources"]],
            [("large", 0.7, 1), ("small_?.bin", 0.3, 2)],
        )
        self.assertEqual([e["name"] for e in start["data"]["evaluations"]], ["held out", "large.bin"])

    def evaluations(self):
        return [(r["name"], r["step"], r["loss"]) for r in self.metrics("evaluation")]

    def test_no_bit_shows_the_ranks_or_a_restart(self):
        self.expect(self.train("checkpoint.folder=one", "run.metrics=metrics.jsonl", ranks=1), 0)
        steps, evaluations = steps_of(self.folder / "metrics.jsonl"), self.evaluations()
        weights = arrays_of(self.folder / "one" / "step_00000006")
        (self.folder / "metrics.jsonl").unlink()
        self.expect(self.train("run.max_steps=3", ranks=2), 75)
        self.expect(self.train(ranks=3), 0)
        self.assertEqual(steps_of(self.folder / "metrics.jsonl"), steps)
        self.assertEqual(self.evaluations(), evaluations)
        found = arrays_of(self.folder / "saved" / "step_00000006")
        values = sorted(name for name in weights if not name.endswith("/runs"))  # these depend on which rank wrote what
        self.assertEqual(values, sorted(name for name in found if not name.endswith("/runs")))
        for name in values:
            self.assertEqual(found[name].tobytes(), weights[name].tobytes(), name)

    def test_a_restart_with_other_weights_or_sources_is_refused(self):
        self.expect(self.train("run.max_steps=3", ranks=2), 75)
        heavier = "data.blend[1].weight=0.4"
        self.expect(self.train(heavier, ranks=2), 2, "other training data", "data.blend[1].weight is 0.4, was 0.3")
        self.expect(self.train("data.blend=", "data.files=large.bin", ranks=2), 2, "data.blend has 0 tables, had 2")
        (self.folder / "small_0.bin").write_bytes(raw([100] * 50))
        self.expect(self.train(ranks=2), 2, "the files of data.blend differ")
        self.expect(self.train(heavier, "checkpoint.allow_new_data=true", "evaluate=", ranks=2), 0)

    def test_all_that_is_wrong_with_the_files_is_said(self):
        (self.folder / "large.bin").write_bytes(raw(TOKENS + [300]))
        (self.folder / "small_1.bin").write_bytes(b"odd")
        wrong = (
            "small_1.bin: 3 bytes are not a multiple of the token width, 2 bytes",
            "absent.txt: cannot be opened",
            "large.bin: token 3000 (counted from 0) is 300, but model.vocab = 256",
        )
        shown = self.expect(self.run_kzero("check", "--files", "deck.toml", "evaluate[0].files=absent.txt"), 4, *wrong)
        self.assertEqual(len(shown.stderr.splitlines()), 3, shown.stderr)


def documents(count=30, length=lambda d: 2 + d * 7 % 10, first=0, weights=()):
    """A file of documents, as docs/data.md describes it. Every fourth has no target."""
    starts, words = [0], []
    for d in range(first, first + count):
        for i in range(length(d)):
            words.append((d * 5 + i) % 251 | (int(i > 0 and d % 4 != 3 and (d + i) % 3 > 0) << 31))
        starts.append(len(words))
    head = b"KZERODOC" + struct.pack("<IIQQ", 1, 2 if weights else 0, len(words), count)
    of_documents = struct.pack(f"<{count + 1}Q{len(weights)}f", *starts, *weights)
    return head.ljust(256, b"\0") + of_documents + struct.pack(f"<{len(words)}I", *words)


class DocumentTest(LaunchTest):
    def setUp(self):
        super().setUp()
        (self.folder / "chat.docs").write_bytes(documents())
        (self.folder / "held_out.docs").write_bytes(documents(8))
        deck = DECK.replace('files = ["text"]', 'files = ["chat.docs"]\nformat = "documents"')
        deck += '[[evaluate]]\nfiles = ["held_out.docs"]\n'
        (self.folder / "deck.toml").write_text(deck)


class Documents(DocumentTest):
    def test_a_run_says_how_full_sequences_are_and_counts_targets(self):
        shown = self.expect(self.run_kzero("check", "deck.toml", "--files"), 0).stdout
        self.assertRegex(shown, r"packs 30 documents into \d+ sequences, \d+ % full, \d+ % of the positions are targets")
        self.assertIn("evaluation  held_out.docs", shown)
        shown = self.expect(self.train(ranks=2), 0).stdout
        self.assertRegex(shown, "packs 30 documents into")
        steps = records(self.folder / "metrics.jsonl", "step")
        self.assertEqual(len(steps), 6)
        self.assertTrue(all(step["targets"] > 0 for step in steps), steps)
        start = records(self.folder / "metrics.jsonl", "start")[0]
        self.assertEqual(start["data"]["packing"]["documents"], 30)
        in_run = records(self.folder / "metrics.jsonl", "evaluation")[-1]
        scored = json.loads(self.expect(self.run_kzero("evaluate", "saved", "held_out.docs", "--json"), 0).stdout)
        file = scored["results"][0]
        self.assertEqual(in_run["tokens"], file["tokens"])
        self.assertAlmostEqual(in_run["loss"], file["loss"], 5, "packed, and each document alone")
        alone = json.loads(
            self.expect(self.run_kzero("evaluate", "saved", "held_out.docs", "--json", "--batch", "1"), 0).stdout
        )
        self.assertAlmostEqual(file["loss"], alone["results"][0]["loss"], 6)

    def test_a_restart_continues_and_refuses_other_documents(self):
        self.expect(self.train("run.max_steps=3", ranks=2), 75)
        self.expect(self.train(ranks=1), 0)
        stopped = steps_of(self.folder / "metrics.jsonl")
        self.expect(self.train("checkpoint.folder=", ranks=1), 0)
        self.assertEqual(stopped, steps_of(self.folder / "metrics.jsonl"))
        (self.folder / "chat.docs").write_bytes(documents(29))
        self.expect(self.train("train.steps=8", ranks=1), 2, "with other training data")

    def test_inspect_shows_a_sequence(self):
        shown = self.expect(self.run_kzero("inspect", "deck.toml", "--sample", "3"), 0).stdout
        self.assertRegex(shown, r"^sample 3: step 0, documents: \d+, targets: \d+\n")
        self.assertRegex(shown, r"document \d+: positions 0 to \d+\n  \d+")
        targets = int(shown.split()[7])
        self.assertEqual(shown.count("["), targets)
        self.expect(self.run_kzero("inspect", "deck.toml", "--sample", "-1"), 2)
        other = self.expect(self.run_kzero("inspect", "deck.toml", "train.seed=77", "--sample", "3"), 0).stdout
        self.assertNotEqual(other, shown, "overrides apply")
        self.expect(self.run_kzero("inspect", "deck.toml", "train.sede=7", "--sample", "3"), 2, "train.seed")

    def test_bad_documents_are_refused(self):
        too_long = "chat.docs: 6 of 30 documents have more than model.sequence = 9 tokens"
        self.expect(self.run_kzero("check", "deck.toml", "--files", "model.sequence=9"), 4, too_long)
        other = 'chat.docs: data.format = "bytes", but it looks like a file of documents; set data.format = "documents"'
        self.expect(self.train("data.format=bytes", ranks=1), 4, other)
        (self.folder / "chat.docs").write_bytes(documents()[:-4])
        self.expect(self.train(ranks=2), 4, "chat.docs: its header counts")


class Weights(DocumentTest):
    """Documents with weights, some of which are 0 or below 0."""

    WEIGHTS = [0.5 * (d % 6) - 0.75 for d in range(30)]

    def setUp(self):
        super().setUp()
        self.write(self.WEIGHTS)

    def write(self, weights, name="chat.docs"):
        (self.folder / name).write_bytes(documents(weights=weights))

    def results(self, *options, ranks=1):
        self.expect(self.train("checkpoint.folder=", *options, ranks=ranks), 0)
        return steps_of(self.folder / "metrics.jsonl")

    def test_the_loss_is_weighted_and_the_divisor_counts_targets(self):
        shown = self.expect(self.run_kzero("check", "deck.toml", "--files"), 0).stdout
        self.assertIn("documents have weights from -0.75 to 1.75", shown)
        weighted = self.results(ranks=2)
        start = records(self.folder / "metrics.jsonl", "start")[0]["data"]["packing"]
        self.assertEqual((start["least_weight"], start["largest_weight"]), (-0.75, 1.75))
        targets = [step["targets"] for step in records(self.folder / "metrics.jsonl", "step")]
        self.assertEqual(weighted, self.results("zero.stage=3", ranks=3))
        self.write([1] * 30)
        ones = self.results()
        self.assertEqual(targets, [step["targets"] for step in records(self.folder / "metrics.jsonl", "step")])
        self.write(())
        self.assertEqual(ones, self.results(), "weights of 1 are no weights")
        self.assertNotIn("weights", self.run_kzero("check", "deck.toml", "--files").stdout)
        self.write([2] * 30)
        (_, loss, norm, *_), (_, twice_loss, twice_norm, *_) = ones[0], self.results()[0]
        self.assertEqual((2 * loss, 2 * norm), (twice_loss, twice_norm), "at step 0, before weights differ")

    def test_evaluations_have_no_weights(self):
        def losses_of(event):
            return [record["loss"] for record in records(self.folder / "metrics.jsonl", event)]

        frozen = (
            "optimizer.lr=1e-30",
            "optimizer.min_lr=0",
            "train.validate_every=6",
            "train.validation_batches=1",
            "data.validation_fraction=0.3",
        )
        self.write(self.WEIGHTS, "held_out.docs")
        self.results(*frozen)
        with_weights = losses_of("evaluation") + losses_of("validation")
        self.write((), "held_out.docs")
        self.write(())
        self.results(*frozen)
        self.assertEqual(with_weights, losses_of("evaluation") + losses_of("validation"))
        self.assertEqual(len(with_weights), 2)

    def test_a_blend_may_have_both_kinds(self):
        blend = '[[data.blend]]\nfiles = ["chat.docs"]\nweight = 1\n[[data.blend]]\nfiles = ["held_out.docs"]\nweight = 1\n'
        deck = (self.folder / "deck.toml").read_text().replace('files = ["chat.docs"]\n', "")
        (self.folder / "deck.toml").write_text(deck + blend)
        shown = self.expect(self.run_kzero("check", "deck.toml", "--files"), 0).stdout
        self.assertIn("documents have weights from -0.75 to 1.75", shown)
        self.assertEqual(self.results(), self.results("zero.stage=2", ranks=3))

    def test_inspect_shows_them(self):
        shown = self.expect(self.run_kzero("inspect", "deck.toml", "--sample", "3"), 0).stdout
        found = re.findall(r"document (\d+): positions \d+ to \d+, weight (\S+)", shown)
        self.assertEqual([float(weight) for _, weight in found], [self.WEIGHTS[int(number)] for number, _ in found])
        self.assertTrue(found)

    def test_a_restart_refuses_other_weights(self):
        self.expect(self.train("run.max_steps=3", ranks=2), 75)
        self.write([*self.WEIGHTS[:-1], 9])
        self.expect(self.train(ranks=1), 2, "with other training data")
        self.expect(self.train("checkpoint.allow_new_data=true", ranks=1), 0)

    def test_bad_weights_are_refused(self):
        self.expect(
            self.train("train.z_loss=1e-4", ranks=2), 4, "train.z_loss = 0.0001, but it must be 0 with documents that have"
        )
        self.write([*self.WEIGHTS[:-1], float("nan")])
        bad = (
            "chat.docs: document 29 (counted from 0) has the weight nan, but a weight is a finite number; write the file again"
        )
        self.expect(self.train(ranks=2), 4, bad)
        (self.folder / "chat.docs").write_bytes(documents(weights=self.WEIGHTS)[:400])
        self.expect(self.run_kzero("check", "deck.toml", "--files"), 4, "chat.docs: its header counts")
        (self.folder / "chat.docs").write_bytes(documents(weights=self.WEIGHTS).replace(b"\2\0\0\0", b"\3\0\0\0", 1))
        self.expect(self.train(ranks=1), 4, 'looks like a file of pairs of documents; set data.format = "pairs"')
        paired = self.train("data.format=pairs", "preference.loss=simpo", "evaluate=", ranks=1)
        self.expect(
            paired, 4, "chat.docs: is marked as pairs with weights (3 in bytes 12 to 15), but only documents without pairs"
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
