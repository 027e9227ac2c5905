"""kzero evaluate from outside: the same bits on any number of ranks, the losses of a training, choices, errors."""

import json
import math
import os
import random
import shutil
import signal
import struct
import subprocess
import time
import unittest
from pathlib import Path

from launch import FOR_DEVICES, PATIENCE, LaunchTest, ranks_of
from test_data import documents

LENGTH = 11  # of the deck's model


def write_tokens(path, tokens):
    Path(path).write_bytes(
        struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253) + struct.pack(f"<{len(tokens)}H", *tokens)
    )


def write_choices(path, examples):
    words = []
    for number, (label, context, endings) in enumerate(examples):
        one = [65535, 0, number, label, len(endings), len(context), *context]
        for ending in endings:
            one += [len(ending), *ending]
        one[1] = 2 * len(one)
        words += one
    Path(path).write_bytes(
        struct.pack("<256i", 20240522, 1, len(examples), *[0] * 253) + struct.pack(f"<{len(words)}H", *words)
    )


def made_choices(count, longest=6):
    random.seed(3)
    some = lambda low, high: [random.choice(b"bottles of") for _ in range(random.randint(low, high))]
    return [(random.randrange(4), some(1, 5), [some(1, longest) for _ in range(4)]) for _ in range(count)]


class Scored(LaunchTest):
    def evaluate(self, *arguments, ranks=1):
        result = self.expect(self.run_kzero("evaluate", *arguments, "--json", ranks=ranks), 0)
        self.assertEqual(result.stderr, "")
        return json.loads(result.stdout)

    def results(self, *arguments, ranks=1):
        """The scores without the times."""
        return [
            {key: value for key, value in result.items() if key != "seconds"}
            for result in self.evaluate(*arguments, ranks=ranks)["results"]
        ]

    def expect_validation_loss(self, scored):
        validated = self.metrics("validation")[-1]
        self.assertEqual(scored["tokens"], validated["tokens"])
        if FOR_DEVICES:  # their sums have another order
            self.assertAlmostEqual(scored["loss"], validated["loss"], places=6)
        else:
            self.assertEqual(scored["loss"], validated["loss"])


class Trained(Scored):
    def setUp(self):
        super().setUp()
        (self.folder / "val").write_bytes(b"".join(b"%d beers of bottle, " % i for i in range(20))[: 3 * 4 * LENGTH + 1])
        self.expect(
            self.train(
                "data.validation_files=val",
                "train.validate_every=6",
                "train.validation_batches=3",
                "train.micro_batch=2",
                *self.OVERRIDES,
            ),
            0,
        )

    OVERRIDES = ()


class Texts(Trained):
    def test_the_bits_depend_neither_on_ranks_nor_on_partition(self):
        write_choices(self.folder / "choices.bin", made_choices(5))
        files = ("val", "text", "choices.bin")
        one = self.results("saved", *files)
        for ranks, options in ((2, ()), (3, ()), (4, ("--partition",)), (3, ("--partition",))):
            with self.subTest(f"{ranks} ranks {options}"):
                self.assertEqual(self.results("saved", *files, *options, ranks=ranks), one)

    def test_it_is_the_validation_loss_of_the_training(self):
        (scored,) = self.results("saved", "val", "--as-trained", ranks=2)
        self.expect_validation_loss(scored)
        self.assertEqual(scored["perplexity"], math.exp(scored["loss"]))
        self.assertAlmostEqual(scored["bits_per_byte"], scored["loss"] / math.log(2), places=12)
        self.assertEqual((scored["bytes"], scored["kind"], scored["format"]), (scored["tokens"], "text", "bytes"))

    def test_a_model_of_bytes_takes_a_plain_text_for_bytes(self):
        (self.folder / "val.txt").write_bytes((self.folder / "val").read_bytes())
        bytes_, text = self.results("saved", "val.txt")[0], self.results("saved", "val.txt", "--format", "text")[0]
        self.assertEqual((bytes_["format"], text["format"]), ("bytes", "text"))
        self.assertEqual({**bytes_, "format": ""}, {**text, "format": ""})

    def test_every_token_but_the_first_is_scored(self):
        (self.folder / "short").write_bytes((self.folder / "val").read_bytes()[: 2 * LENGTH + 6])
        (whole,) = self.results("saved", "short", "--batch", "1")
        self.assertEqual(whole["tokens"], 2 * LENGTH + 5)
        # Before the last window, and in it only: a mean of means weighted by tokens.
        (front,) = self.results("saved", "short", "--batch", "1", "--tokens", 2 * LENGTH)
        (self.folder / "rest").write_bytes((self.folder / "short").read_bytes()[2 * LENGTH :])
        (rest,) = self.results("saved", "rest", "--batch", "1")
        self.assertEqual((front["tokens"], rest["tokens"]), (2 * LENGTH, 5))
        mean = (front["loss"] * front["tokens"] + rest["loss"] * rest["tokens"]) / whole["tokens"]
        self.assertAlmostEqual(whole["loss"], mean, places=10)

    def test_shorter_sequences_and_other_grids(self):
        (usual,) = self.results("saved", "val")
        (shorter,) = self.results("saved", "val", "--sequence", "7", ranks=2)
        self.assertEqual((shorter["sequence"], shorter["tokens"]), (7, usual["tokens"]))
        self.assertNotEqual(shorter["loss"], usual["loss"])
        tensor = self.evaluate("saved", "val", "--tensor", "3", ranks=3)
        self.assertEqual((tensor["data_ranks"], tensor["tensor_ranks"]), (1, 3))
        self.assertAlmostEqual(tensor["results"][0]["loss"], usual["loss"], places=5)
        for precision in ("bf16", "fp16"):
            (rounded,) = self.results("saved", "val", "--precision", precision)
            self.assertNotEqual(rounded["loss"], usual["loss"])
            self.assertAlmostEqual(rounded["loss"], usual["loss"], places=1)

    def test_formats_are_recognised(self):
        tokens = list((self.folder / "val").read_bytes())
        write_tokens(self.folder / "val.bin", tokens)
        plain, llmc = self.results("saved", "val", "val.bin")
        self.assertEqual((llmc["loss"], llmc["format"]), (plain["loss"], "llmc"))
        self.assertIsNone(llmc["bits_per_byte"])  # the meaning of its tokens is unknown
        (named,) = self.results("saved", "val.bin", "--format", "llmc")
        self.assertEqual(named, llmc)
        for width, letter in ((2, "H"), (4, "I")):
            (self.folder / "val.raw").write_bytes(struct.pack(f"<{len(tokens)}{letter}", *tokens))
            (raw,) = self.results("saved", "val.raw", "--format", "raw", "--token-bytes", width, ranks=2)
            self.assertEqual((raw["loss"], raw["format"]), (plain["loss"], "raw"))
        shown = self.expect(self.run_kzero("evaluate", "saved", "v*.bin"), 0).stdout
        self.assertIn("bits per byte       not known: no tokenizer.json was found; --tokenizer FILE", shown)
        self.assertIn("tokens              132 in sequences of 11", shown)

    def test_an_exported_folder_has_the_same_scores(self):
        self.expect(self.run_kzero("convert", "saved", "hf"), 0)
        (checkpoint,) = self.results("saved", "val")
        (exported,) = self.results("hf", "val", "--format", "bytes", ranks=2)
        self.assertEqual(exported, checkpoint)
        self.expect(self.run_kzero("evaluate", "hf", "val", "--as-trained"), 2, "--as-trained: hf is a Hugging Face folder")

    def test_the_newest_good_checkpoint_is_taken(self):
        self.expect(
            self.train(
                "data.validation_files=val",
                "train.micro_batch=2",
                "checkpoint.every=1",
                "train.steps=8",
                "checkpoint.allow_new_data=true",
            ),
            0,
        )
        shard = next((self.folder / "saved/step_00000008").glob("shard_*.h5"))
        data = bytearray(shard.read_bytes())
        data[len(data) // 2] ^= 1
        shard.write_bytes(data)
        result = self.expect(self.run_kzero("evaluate", "saved", "val", "--json", ranks=2), 0)
        self.assertIn("passed over", result.stderr)
        self.assertTrue(json.loads(result.stdout)["model"].endswith("step_00000007"))


class Shared(Scored):
    """Sequences that ranks share, in the chunks and tiles of the training."""

    LENGTH = 16
    MODEL = ()
    PRECISION = "fp32"

    def setUp(self):
        super().setUp()
        (self.folder / "val").write_bytes(b"".join(b"%d beers of bottle, " % i for i in range(20))[: 12 * self.LENGTH + 1])
        self.expect(
            self.train(
                *self.MODEL,
                "model.heads=4",
                f"model.sequence={self.LENGTH}",
                "train.sequence_chunks=4",
                "train.tile_rows=2",
                f"train.precision={self.PRECISION}",
                "data.validation_files=val",
                "train.validate_every=6",
                "train.validation_batches=3",
            ),
            0,
        )

    def expect_the_same_bits_for_all_numbers_of_ranks(self):
        write_choices(self.folder / "choices.bin", made_choices(5))
        (self.folder / "short").write_bytes((self.folder / "val").read_bytes()[: self.LENGTH + 6])
        (self.folder / "chat.docs").write_bytes(documents(5))
        files = ("val", "short", "choices.bin", "chat.docs")
        files = (*files, "--as-trained")
        one, of_tensor = self.results("saved", *files), self.results("saved", *files, "--tensor", "2", ranks=2)
        self.expect_validation_loss(one[0])
        for ranks, shared, expected, options in (
            (2, 2, one, ()),
            (4, 2, one, ()),
            (4, 4, one, ("--partition",)),
            (4, 2, of_tensor, ("--tensor", "2", "--partition")),
        ):
            with self.subTest(f"{shared} of {ranks} ranks {options}"):
                self.assertEqual(self.results("saved", *files, "--sequence-ranks", shared, *options, ranks=ranks), expected)


class SharedSequences(Shared):
    def test_the_bits_do_not_depend_on_how_many_ranks_share_a_sequence(self):
        self.expect_the_same_bits_for_all_numbers_of_ranks()

    def test_the_number_of_chunks_can_be_another(self):
        (one,) = self.results("saved", "val", "--sequence-chunks", "2")
        shared = self.evaluate("saved", "val", "--sequence-ranks", "2", "--sequence-chunks", "2", ranks=2)
        self.assertEqual((shared["data_ranks"], shared["sequence_ranks"]), (2, 2))
        self.assertEqual(shared["results"][0]["loss"], one["loss"])
        self.expect(self.run_kzero("convert", "saved", "hf"), 0)
        (exported,) = self.results("hf", "val", "--format", "bytes", "--sequence-ranks", "2", ranks=2)
        self.assertAlmostEqual(exported["loss"], one["loss"], places=5)  # without tiles

    def test_what_cannot_be_shared_is_refused(self):
        for text, options in (
            ("grid.sequence must divide the 2 data-parallel ranks", ("--sequence-ranks", "4")),
            (
                "train.sequence_chunks must be a multiple of grid.sequence = 2",
                ("--sequence-ranks", "2", "--sequence-chunks", "1"),
            ),
            ("--batch must be 1 with sequences of 2 chunks, found 2", ("--sequence-ranks", "2", "--batch", "2")),
            ("val: sequences of 10 tokens cannot have 4 chunks of equal length", ("--sequence", "10", "--as-trained")),
        ):
            with self.subTest(text):
                self.expect(self.run_kzero("evaluate", "saved", "val", *options, ranks=2), 2, text)


class SharedLlama(Shared):
    MODEL = ("model.family=llama", "model.kv_heads=2", "model.head_dim=4", "model.qk_norm=true")
    PRECISION = "bf16"

    def test_the_bits_do_not_depend_on_how_many_ranks_share_a_sequence(self):
        self.expect_the_same_bits_for_all_numbers_of_ranks()


class Choices(Trained):
    def test_they_are_those_of_a_plain_computation(self):
        """Each ending as a text of its own: context and ending, less the context alone."""
        examples = made_choices(4, longest=4)
        write_choices(self.folder / "choices.bin", examples)
        (found,) = self.results("saved", "choices.bin", "--sequence", LENGTH, "--batch", "1", ranks=2)
        files = []
        for number, (_, context, endings) in enumerate(examples):
            for place, ending in enumerate(endings):
                (self.folder / f"{number}.{place}").write_bytes(bytes(context + ending))
                files.append(f"{number}.{place}")
            if len(context) > 1:
                (self.folder / f"{number}.context").write_bytes(bytes(context))
                files.append(f"{number}.context")
        scored = {result["file"]: result["loss"] * result["tokens"] for result in self.results("saved", *files, "--batch", "1")}
        sums, means = [], []
        for number, (_, _, endings) in enumerate(examples):
            losses = [scored[f"{number}.{place}"] - scored.get(f"{number}.context", 0) for place in range(4)]
            sums.append(losses.index(min(losses)))
            per_token = [loss / len(ending) for loss, ending in zip(losses, endings)]
            means.append(per_token.index(min(per_token)))
        labels = [label for label, _, _ in examples]
        self.assertEqual((found["chosen"], found["chosen_normalized"]), (sums, means))
        self.assertEqual(found["accuracy"], sum(map(int.__eq__, sums, labels)) / len(labels))
        self.assertEqual(found["accuracy_normalized"], sum(map(int.__eq__, means, labels)) / len(labels))

    def test_rows_that_do_not_fit_are_refused(self):
        write_choices(self.folder / "choices.bin", [(0, [65] * 9, [[66], [66] * 4])])
        self.expect(
            self.run_kzero("evaluate", "saved", "choices.bin"),
            2,
            "has 13 tokens, but the model's sequence = 11 makes room for 12",
        )
        write_choices(self.folder / "choices.bin", [(0, [65] * 9, [[66], [66] * 3])])
        self.expect(
            self.run_kzero("evaluate", "saved", "choices.bin", "--sequence", "10"), 2, "--sequence = 10 makes room for 11"
        )
        self.expect(self.run_kzero("evaluate", "saved", "choices.bin"), 0)


class Mistakes(Trained):
    def refuse(self, code, text, *arguments, ranks=2):
        self.expect(self.run_kzero("evaluate", *arguments, ranks=ranks), code, text)

    def test_each_is_told_once(self):
        write_tokens(self.folder / "high.bin", [1, 2, 999])
        write_tokens(self.folder / "one.bin", [1])
        write_choices(self.folder / "choices.bin", made_choices(2))
        cut = self.folder / "cut.bin"
        cut.write_bytes((self.folder / "choices.bin").read_bytes()[:-2])
        for code, text, arguments in (
            (4, "nowhere: does not exist", ("nowhere", "val")),
            (4, ".: has no checkpoint and no Hugging Face model", (".", "val")),
            (4, "nofile: cannot be opened", ("saved", "nofile")),
            (4, "high.bin: token 2 (counted from 0) is 999", ("saved", "high.bin")),
            (4, "one.bin: has 1 tokens", ("saved", "one.bin")),
            (4, "cut.bin: example 1", ("saved", "cut.bin")),
            (4, "begin with 20240522", ("saved", "val", "--format", "choices")),
            (4, "--tokenizer: none.json does not exist", ("saved", "val", "--tokenizer", "none.json")),
            (2, "has positions for 11", ("saved", "val", "--sequence", "12")),
            (2, "grid.tensor must divide model.heads = 3", ("saved", "val", "--tensor", "2")),
            (2, "--format", ("saved", "val", "--format", "words")),
            (2, "--batch", ("saved", "val", "--batch", "0")),
        ):
            with self.subTest(text):
                self.refuse(code, text, *arguments)
        self.expect(self.run_kzero("convert", "saved", "hf"), 0)
        self.refuse(2, "name it with --format", "hf", "val")
        self.refuse(2, "grid.tensor must divide the number of ranks, 2", "saved", "val", "--tensor", "3")


class LogProbs(Trained):
    """Files of --log-probs: the same bytes from any grid, and what they hold."""

    HEAD = struct.Struct("<8sIIQQQQ")

    def write(self, name, *arguments, model="saved", file="chat.docs", ranks=1):
        self.expect(self.run_kzero("evaluate", model, file, "--log-probs", name, *arguments, ranks=ranks), 0)
        return (self.folder / name).read_bytes()

    def setUp(self):
        super().setUp()
        (self.folder / "chat.docs").write_bytes(documents(13))

    def test_ranks_and_partition_change_no_byte(self):
        one = self.write("one")
        for ranks, options in ((2, ()), (4, ()), (2, ("--partition",)), (3, ("--partition",)), (4, ("--partition",))):
            with self.subTest(f"{ranks} ranks {options}"):
                self.assertEqual(self.write("other", *options, ranks=ranks), one)

    def test_they_are_the_sums_of_each_document(self):
        data = self.write("all")
        magic, version, zero, count, model, content, _ = self.HEAD.unpack_from(data)
        self.assertEqual((magic, version, zero, count, len(data)), (b"KZEROLNP", 1, 0, 13, 256 + 8 * 13))
        values = struct.unpack_from("<13d", data, 256)
        (score,) = self.results("saved", "chat.docs")
        self.assertAlmostEqual(-sum(values) / score["tokens"], score["loss"], 12)
        self.assertEqual([v == 0 for v in values], [d % 4 == 3 for d in range(13)], "documents without targets")
        # Each document as a file of its own.
        for d in range(13):
            if d % 4 == 3:
                continue
            (self.folder / "one.docs").write_bytes(documents(1, first=d))
            (score,) = self.results("saved", "one.docs")
            self.assertAlmostEqual(-values[d], score["loss"] * score["tokens"], 4)
        # The hashes follow what they name, and nothing else.
        shutil.copy(self.folder / "chat.docs", self.folder / "renamed.docs")
        self.assertEqual(self.write("renamed", file="renamed.docs"), data)
        (self.folder / "chat.docs").write_bytes(documents(12))
        shorter = self.HEAD.unpack_from(self.write("shorter"))
        self.assertEqual(shorter[4], model)
        self.assertNotEqual(shorter[5], content)
        self.expect(self.run_kzero("convert", "saved", "hf"), 0)
        self.assertEqual(self.write("converted", model="hf"), self.write("shorter"))
        self.expect(self.train("train.steps=7", "checkpoint.allow_new_data=true"), 0)
        self.assertNotEqual(self.HEAD.unpack_from(self.write("later"))[4], model)

    def test_mistakes(self):
        for code, text, arguments in (
            (2, "--log-probs is for one file or pattern, found 2", ("chat.docs", "val", "--log-probs", "out")),
            (2, "--log-probs: val has no documents with targets", ("val", "--log-probs", "out")),
            (4, "nowhere/out", ("chat.docs", "--log-probs", "nowhere/out")),
        ):
            with self.subTest(text):
                self.expect(self.run_kzero("evaluate", "saved", *arguments, ranks=2), code, text)
                self.assertFalse(list(self.folder.glob("out*")))


TOKENIZER = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "normalizer": None,
    "added_tokens": [
        {
            "id": 0,
            "content": "<|end|>",
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
    ],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "post_processor": None,
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "model": {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {},
        "merges": ["a b", "ab c"],
    },
}


def tokenizer(*more):
    """Tokens of one byte, "ab", "abc" and more, and an end token after them."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    symbols = {byte: chr(byte) for byte in printable}
    symbols |= {byte: chr(256 + i) for i, byte in enumerate(b for b in range(256) if b not in printable)}
    words = [symbols[byte] for byte in range(256)] + ["ab", "abc", *more]
    added = TOKENIZER["added_tokens"][0] | {"id": len(words)}
    model = TOKENIZER["model"] | {"vocab": {word: id for id, word in enumerate(words)}}
    return TOKENIZER | {"added_tokens": [added], "model": model}


class Tokenizers(Trained):
    """Tokens that are not bytes, with a tokenizer.json next to the data."""

    def setUp(self):
        LaunchTest.setUp(self)
        random.seed(7)
        data = self.folder / "data"
        data.mkdir()
        self.tokens = [random.choice([97, 98, 256, 257]) for _ in range(1500)]
        write_tokens(data / "train.bin", self.tokens)
        (data / "tokenizer.json").write_text(json.dumps(tokenizer()))
        (data / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "<|end|>"}, "bos_token": "<|end|>"}))
        self.expect(self.train("data.format=llmc", "data.files=data/train.bin", "model.vocab=259"), 0)

    def test_bits_per_byte_count_the_bytes_of_tokens(self):
        write_tokens(self.folder / "text.bin", [97, 257, 256, 258, 98])
        (scored,) = self.results("saved", "text.bin", ranks=2)
        self.assertEqual((scored["tokens"], scored["bytes"]), (4, 6))  # abc, ab, the end token, which is not text, b
        self.assertAlmostEqual(scored["bits_per_byte"], scored["loss"] / math.log(2) * 4 / 6, places=12)
        (self.folder / "data/tokenizer.json").rename(self.folder / "elsewhere.json")
        shutil.rmtree(self.folder / "saved/origin")  # of a version that kept nothing
        self.assertIsNone(self.results("saved", "text.bin")[0]["bits_per_byte"])
        (named,) = self.results("saved", "text.bin", "--tokenizer", "elsewhere.json")
        self.assertEqual(named, scored)

    def test_plain_text_is_scored_like_its_token_file(self):
        write_tokens(self.folder / "text.bin", [97, 257, 256, 258, 98])
        (self.folder / "text.txt").write_text("aabcab<|end|>b")
        (self.folder / "text").write_text("aabcab<|end|>b")
        (self.folder / "part1.txt").write_text("aabc")
        (self.folder / "part2.txt").write_text("ab<|end|>b")
        tokens, plain, parts = self.results("saved", "text.bin", "text.txt", "part?.txt", ranks=2)
        self.assertEqual((plain["format"], plain["bytes"]), ("text", 6))
        for one in (plain, parts, *self.results("saved", "text", "--format", "text")):
            self.assertEqual({**one, "file": "", "format": ""}, {**tokens, "file": "", "format": ""})
        self.expect(self.run_kzero("convert", "saved", "hf"), 0)
        self.assertAlmostEqual(self.results("hf", "text.txt")[0]["loss"], plain["loss"], places=6)

    def test_plain_text_has_the_tokens_that_the_tokenizer_adds(self):
        rules = json.loads((self.folder / "data/tokenizer.json").read_text())
        rules["post_processor"] = {"type": "BertProcessing", "cls": ["<|end|>", 258], "sep": ["b", 98]}
        (self.folder / "begins.json").write_text(json.dumps(rules))
        write_tokens(self.folder / "text.bin", [258, 97, 257, 98])
        (self.folder / "text.txt").write_text("aabc")
        write_tokens(self.folder / "bare.bin", [97, 257])
        given = ("--tokenizer", "begins.json")
        tokens, plain = self.results("saved", "text.bin", "text.txt", *given)
        self.assertEqual({**plain, "file": "", "format": ""}, {**tokens, "file": "", "format": ""})
        bare, plain = self.results("saved", "bare.bin", "text.txt", *given, "--no-special-tokens")
        self.assertEqual({**plain, "file": "", "format": ""}, {**bare, "file": "", "format": ""})

    def test_a_plain_text_that_has_no_tokens_is_refused(self):
        (self.folder / "bad.txt").write_bytes(b"ab\xff")
        (self.folder / "empty.txt").write_bytes(b"")
        refuse = lambda name, text: self.expect(self.run_kzero("evaluate", "saved", name, "--format", "text"), 4, text)
        refuse("bad.txt", "bad.txt: the text is not UTF-8: byte 2 is 0xff")
        refuse("empty.txt", "empty.txt: has 0 tokens")
        refuse("none.txt", "none.txt: cannot be")
        refuse("data", "data: cannot be read")
        (self.folder / "data/tokenizer.json").unlink()
        shutil.rmtree(self.folder / "saved/origin")
        self.expect(
            self.run_kzero("evaluate", "saved", "bad.txt"),
            4,
            "no tokenizer.json was found in the folders of the model and its data",
        )

    def test_an_export_takes_the_tokenizer_along(self):
        self.assertIn("tokenizer.json, tokenizer_config.json", self.expect(self.run_kzero("convert", "saved", "hf"), 0).stdout)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            self.assertEqual((self.folder / "hf" / name).read_bytes(), (self.folder / "data" / name).read_bytes())
        for name in ("config.json", "generation_config.json"):
            described = json.loads((self.folder / "hf" / name).read_text())
            self.assertEqual((described["eos_token_id"], described["bos_token_id"]), (258, 258), name)
        (self.folder / "data").rename(self.folder / "moved")
        self.expect(self.run_kzero("convert", "saved", "late"), 0)
        self.assertTrue((self.folder / "late/tokenizer.json").exists())
        shutil.rmtree(self.folder / "saved/origin")
        self.expect(self.run_kzero("convert", "saved", "bare"), 0)
        self.assertFalse((self.folder / "bare/tokenizer.json").exists())
        self.expect(self.run_kzero("convert", "saved", "named", "--tokenizer", "moved"), 0)
        self.assertTrue((self.folder / "named/tokenizer_config.json").exists())

    def test_a_tokenizer_of_another_model_is_refused(self):
        (self.folder / "data/tokenizer.json").write_text(json.dumps(tokenizer("many")))
        self.expect(self.run_kzero("convert", "saved", "hf", "--tokenizer", "data"), 4, "has tokens up to 259")
        shutil.rmtree(self.folder / "saved/origin")
        self.assertIn("has tokens up to 259", self.expect(self.run_kzero("convert", "saved", "hf"), 0).stdout)
        self.assertFalse((self.folder / "hf/tokenizer.json").exists())
        write_tokens(self.folder / "text.bin", [97, 256])
        self.expect(self.run_kzero("evaluate", "saved", "text.bin", "--tokenizer", "data"), 4, "has tokens up to 259")
        self.expect(self.run_kzero("evaluate", "saved", "text.bin"), 0)
        self.expect(
            self.run_kzero("convert", "saved", "one.safetensors", "--tokenizer", "data"),
            2,
            "--tokenizer is copied into a folder",
        )


class Stops(Trained):
    def scores_files(self, pid):
        """Whether the process has begun to score: a pipe that closes no longer ends it."""
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGPIPE - 1) & 1)
        return False

    def test_a_signal_ends_it_within_a_batch(self):
        (self.folder / "big").write_bytes(b"bottles of beer " * 400000)
        for ranks, rank, number in ((1, 0, signal.SIGINT), (2, 1, signal.SIGTERM), (4, 2, signal.SIGUSR1)):
            with self.subTest(f"{ranks} ranks"):
                launch = subprocess.Popen(
                    self.command(["evaluate", "saved", "val", "big"], ranks),
                    cwd=self.folder,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                self.addCleanup(lambda launch=launch: (launch.kill(), launch.communicate()) if launch.poll() is None else None)
                end = time.monotonic() + PATIENCE
                while not (len(ranks_of(launch)) == ranks and all(map(self.scores_files, ranks_of(launch).values()))):
                    self.assertIsNone(launch.poll(), "it ended early")
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.01)
                os.kill(ranks_of(launch)[rank], number)
                shown, errors = launch.communicate(timeout=PATIENCE)
                self.assertEqual(launch.returncode, 1, errors)
                self.assertEqual(errors.count(f"stopped by {number.name}; "), 1, errors)
                self.assertIn("has no score", errors)
                self.assertLess(shown.count("perplexity"), 2, shown)


if __name__ == "__main__":
    unittest.main()
