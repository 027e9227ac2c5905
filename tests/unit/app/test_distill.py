"""A student learns from a teacher: its file has the same bytes from any ranks, runs have the same bits, and bad files are refused."""

import json
import struct
import unittest

import numpy as np
from launch import DECK, LaunchTest, records, steps_of

KEYS = ("cross_entropy", "kl")
HEAD = struct.Struct("<8sIIQQQQQQQ")  # magic, version, top, positions, vocab, sequence, model, tokenizer, content, checksum
WITHOUT = ("distill.file=[]", "distill.weight=0.5", "distill.top=64")
TEACHER = ("model.hidden=24", "model.layers=2", "run.metrics=")


def distilled(path):
    return steps_of(path), [tuple(r[k] for k in KEYS) for r in records(path, "step")]


def top_of(path):
    """The header of a file, its tokens and ln p [positions, top]."""
    data = path.read_bytes()
    head = HEAD.unpack(data[: HEAD.size])
    top, positions = head[2], head[3]
    rows = np.frombuffer(data, np.uint8, offset=256).reshape(positions, 8 * top + 8)
    values = lambda begin, kind: np.ascontiguousarray(rows[:, begin : begin + 4 * top]).view(kind)
    return head, values(0, np.uint32), values(4 * top, np.float32)


def documents(count=30, weight=None):
    """Documents of 2 to 10 tokens; the first token of each has no mark, and some others."""
    all_words = []
    for d in range(count):
        words = [(d * 13 + 5 * i) % 250 for i in range(2 + d * 5 % 9)]
        all_words.append([word | (1 << 31) * (i > d % 3) for i, word in enumerate(words)])
    starts = [sum(map(len, all_words[:d])) for d in range(count + 1)]
    words = [word for one in all_words for word in one]
    head = struct.pack("<8sIIQQ", b"KZERODOC", 1, 2 if weight else 0, len(words), count).ljust(256, b"\0")
    weights = struct.pack(f"<{count}f", *[weight] * count) if weight else b""
    return head + struct.pack(f"<{len(starts)}Q", *starts) + weights + struct.pack(f"<{len(words)}I", *words)


class Taught(LaunchTest):
    """A larger model that was trained for a few steps is the teacher."""

    def setUp(self):
        super().setUp()
        self.expect(self.train(*TEACHER, "checkpoint.folder=first"), 0)
        self.expect(self.run_kzero("convert", "first", "teacher"), 0)
        (self.folder / "answers.docs").write_bytes(documents())
        self.teach("text.top")
        (self.folder / "deck.toml").write_text(DECK + '[distill]\nfile = ["text.top"]\nweight = 0.7\ntop = 5\n')

    def teach(self, name, *options, model="teacher", file="text", top=5, ranks=None):
        usual = ("--format", "bytes") if file == "text" else ()
        if file == "text" and "--sequence" not in options:
            usual = (*usual, "--sequence", "11")
        arguments = ("evaluate", model, file, *usual, "--top", top, "--out", name, *options)
        return self.expect(self.run_kzero(*arguments, ranks=ranks), 0)


class Files(Taught):
    def test_their_bytes_depend_neither_on_ranks_nor_on_partition_nor_on_batches(self):
        for file in ("text", "answers.docs"):
            self.teach("one", file=file)
            one = (self.folder / "one").read_bytes()
            for ranks in (2, 4):
                for options in ((), ("--partition",)):
                    with self.subTest(f"{file}, {ranks} ranks {options}"):
                        self.teach("other", *options, file=file, ranks=ranks)
                        self.assertEqual((self.folder / "other").read_bytes(), one)
        self.teach("one", "--sequence-chunks", 1)
        self.assertEqual((self.folder / "one").read_bytes(), (self.folder / "text.top").read_bytes())
        self.teach("ranks", "--sequence-ranks", 1, "--batch", 4, ranks=3)
        self.assertEqual((self.folder / "ranks").read_bytes(), (self.folder / "text.top").read_bytes())

    def test_they_have_each_position_and_the_probabilities_of_the_whole_vocabulary(self):
        tokens = len((self.folder / "text").read_bytes())
        head, top, ln_p = top_of(self.folder / "text.top")
        self.assertEqual(head[1:6], (1, 5, tokens - 1, 256, 11))
        self.assertEqual(len((self.folder / "text.top").read_bytes()), 256 + 48 * (tokens - 1))
        self.assertTrue((np.diff(ln_p) <= 0).all() and (ln_p < 0).all())
        self.teach("all", top=256)
        _, every, every_ln_p = top_of(self.folder / "all")
        self.assertTrue((np.sort(every) == np.arange(256)).all())
        self.assertTrue((every[:, :5] == top).all() and (every_ln_p[:, :5] == ln_p).all())
        self.assertLess(np.abs(np.exp(every_ln_p.astype(float)).sum(1) - 1).max(), 2e-6)
        # The same loss as evaluate's, from the probability of each next token.
        text = np.frombuffer((self.folder / "text").read_bytes(), np.uint8)
        at = every_ln_p[np.arange(tokens - 1), np.argmax(every == text[1:, None], 1)]
        score = json.loads(
            self.run_kzero("evaluate", "teacher", "text", "--format", "bytes", "--sequence", "11", "--json").stdout
        )
        self.assertAlmostEqual(score["results"][0]["loss"], -at.astype(float).mean(), 5)

    def test_tensor_ranks_find_the_same_tokens(self):
        _, top, ln_p = top_of(self.folder / "text.top")
        self.teach("split", "--tensor", 3, ranks=3)
        _, other, other_ln_p = top_of(self.folder / "split")
        self.assertLess(np.abs(other_ln_p - ln_p).max(), 1e-5)
        self.assertGreater((other == top).mean(), 0.999)
        self.teach("again", "--tensor", 3, ranks=6)
        self.assertEqual((self.folder / "again").read_bytes(), (self.folder / "split").read_bytes())

    def test_chunks_of_sequences_are_shared(self):
        nine = ("model.sequence=9", "train.sequence_chunks=3")
        self.expect(self.train(*TEACHER, *nine, "checkpoint.folder=of_nine", *WITHOUT), 0)
        self.expect(self.run_kzero("convert", "of_nine", "teacher"), 0)
        options = ("--sequence", 9, "--sequence-chunks", 3, "--batch", 1)
        self.teach("one", *options)
        for ranks in (3, 6):
            self.teach("shared", *options, "--sequence-ranks", 3, ranks=ranks)
            self.assertEqual((self.folder / "shared").read_bytes(), (self.folder / "one").read_bytes())

    def test_wrong_options_are_refused_before_anything_is_computed(self):
        def refuse(code, text, *arguments):
            model = "first" if "text" in arguments[1:] else "teacher"  # which knows that tokens are bytes
            self.expect(self.run_kzero("evaluate", model, *arguments, ranks=2), code, text)
            self.assertFalse((self.folder / "out").exists())

        usual = ("text", "--format", "bytes")
        refuse(2, "--top must be at most the model's vocabulary, 256 tokens, found 257", *usual, "--top", 257, "--out", "out")
        refuse(2, "--top K and --out FILE go together, found only --top", *usual, "--top", 5)
        refuse(2, "--top K and --out FILE go together, found only --out", *usual, "--out", "out")
        refuse(2, "--top is for one file or pattern, found 2", "deck.toml", *usual, "--top", 5, "--out", "out")
        refuse(2, "--top is for all tokens of the data", *usual, "--tokens", 9, "--top", 5, "--out", "out")
        refuse(2, "--top: text is neither", "text", "--format", "text", "--top", 5, "--out", "out")
        refuse(4, "nowhere/out", *usual, "--top", 5, "--out", "nowhere/out")


class Bits(Taught):
    def same_on_all(self, *options):
        """The results on one rank, which more ranks repeat, and which a restart repeats."""
        self.expect(self.train("checkpoint.folder=", *options, ranks=1), 0)
        one = distilled(self.folder / "metrics.jsonl")
        self.assertEqual(len(one[1]), 6)
        for ranks, stage in ((2, 0), (3, 2), (4, 3)):
            with self.subTest(f"{options}, {ranks} ranks, stage {stage}"):
                self.expect(self.train("checkpoint.folder=", f"zero.stage={stage}", *options, ranks=ranks), 0)
                self.assertEqual(distilled(self.folder / "metrics.jsonl"), one)
        return one

    def test_they_depend_neither_on_ranks_nor_on_stages_nor_on_restarts(self):
        orders = [self.same_on_all(f"data.order={order}") for order in ("shuffled", "sequential")]
        self.assertNotEqual(*orders)
        for (_, loss, *_), (entropy, kl) in zip(*orders[0]):
            self.assertAlmostEqual(loss, 0.3 * entropy + 0.7 * kl, 12)
            self.assertGreater(kl, 0.01)
        self.expect(self.train("run.max_steps=2", ranks=3), 75)
        self.expect(self.train(ranks=2), 0)
        self.assertEqual(distilled(self.folder / "metrics.jsonl"), orders[0])

    def test_documents_and_blends_and_validation(self):
        self.teach("docs.top", file="answers.docs", ranks=2)
        documents_deck = ("data.files=answers.docs", "data.format=documents", "distill.file=docs.top")
        plain = self.same_on_all(*documents_deck)
        (self.folder / "answers.docs").write_bytes(documents(weight=2))
        twice = self.same_on_all(*documents_deck)
        self.assertEqual(twice[1][0], tuple(2 * value for value in plain[1][0]))
        self.assertAlmostEqual(twice[0][0][2], 2 * plain[0][0][2], 4)  # the norm of the gradient
        deck = (self.folder / "deck.toml").read_text().replace('files = ["text"]', "")
        blend = '[[data.blend]]\nfiles = ["text"]\n[[data.blend]]\nfiles = ["second"]\nweight = 2\n'
        (self.folder / "second").write_bytes(bytes(i * i % 251 for i in range(3000)))
        self.teach("second.top", "--format", "bytes", "--sequence", 11, file="second")
        (self.folder / "deck.toml").write_text(deck + blend)
        blended = 'distill.file=["text.top", "second.top"]'
        self.same_on_all(blended, "data.validation_fraction=0.2", "train.validate_every=2")
        self.expect(self.train("checkpoint.folder=", 'distill.file=["second.top", "text.top"]'), 4, "but the data has")
        self.expect(self.train("checkpoint.folder="), 2, "distill.file must name a file for each source of data, 2, found 1")

    def test_a_student_that_is_the_teacher_does_not_differ(self):
        options = ("model.hidden=24", "model.layers=2", "model.initial=teacher", "distill.weight=1", "checkpoint.folder=")
        for ranks, more in ((1, ()), (3, ("grid.tensor=3",))):
            self.expect(self.train(*options, *more, ranks=ranks), 0)
            first = records(self.folder / "metrics.jsonl", "step")[0]
            self.assertLess(abs(first["kl"]), 2e-6)
            self.assertLess(first["grad_norm"], 1e-5)

    def test_a_verified_step_agrees_and_16_bits_train(self):
        self.expect(self.train("checkpoint.folder=", "run.verify_every=2", ranks=2), 0)
        for precision in ("bf16", "fp16"):
            self.expect(self.train("checkpoint.folder=", f"train.precision={precision}", ranks=2), 0)
            divergences = [step["kl"] for step in records(self.folder / "metrics.jsonl", "step")]
            self.assertTrue(all(0 < kl < 6 for kl in divergences), divergences)
            self.assertLess(divergences[-1], divergences[0])

    def test_adapters_and_modes_of_recomputation(self):
        self.expect(self.train("train.steps=2", "checkpoint.folder=small", *WITHOUT), 0)
        self.expect(self.run_kzero("convert", "small", "model"), 0)
        self.same_on_all("model.initial=model", "lora.rank=2", 'lora.targets=["c_attn"]')
        all_modes = [self.same_on_all(f"recompute.mode={mode}") for mode in ("none", "full", "layernorm_gelu")]
        self.assertEqual(all_modes[0], all_modes[1])
        self.assertEqual(all_modes[0], all_modes[2])

    def test_tensor_and_sequence_ranks_send_what_the_plan_says(self):
        self.teach("nine.top", "--sequence", 9)
        nine = (
            "checkpoint.folder=",
            "model.sequence=9",
            "distill.file=nine.top",
            "train.sequence_chunks=3",
            "train.micro_batch=1",
        )
        for one_options, grid in ((("checkpoint.folder=",), "grid.tensor=3"), (nine, "grid.sequence=3")):
            self.expect(self.train(*one_options, ranks=1), 0)
            one = distilled(self.folder / "metrics.jsonl")
            for more in ((), ("model.sequence_parallel=true",)):
                if more and "tensor" not in grid:
                    continue
                with self.subTest(f"{grid} {more}"):
                    self.expect(self.train(*one_options, grid, *more, ranks=3), 0)
                    found = distilled(self.folder / "metrics.jsonl")
                    if "sequence" in grid:
                        self.assertEqual(found, one)
                    for pair, expected in zip(found[1], one[1]):
                        self.assertAlmostEqual(pair[0], expected[0], 5)
                        self.assertAlmostEqual(pair[1], expected[1], 5)
                    (end,) = records(self.folder / "metrics.jsonl", "end")
                    for row in end["traffic"]:
                        self.assertEqual(row["elements_per_step"], row["expected_elements_per_step"], row)

    def test_plan_counts_the_file_and_the_memory(self):
        def memory(*options):
            plan = self.run_kzero("plan", "deck.toml", "--json", *options)
            self.assertEqual(plan.returncode, 0, plan.stderr)
            return json.loads(plan.stdout)

        with_teacher, without = memory(), memory(*WITHOUT)
        text = json.dumps(with_teacher)
        self.assertIn('"teacher_bytes_per_token": 48', text)
        self.assertIn(f'"teacher_bytes": {48 * 6 * 4 * 11}', text)
        self.assertNotIn("teacher_bytes", json.dumps(without))
        plan = self.run_kzero("plan", "deck.toml")
        self.assertIn("distill.file takes 48 bytes for each token of the data: 12.38 KiB for 264 tokens", plan.stdout)
        plans = [plan[0] if isinstance(plan, list) else plan for plan in (with_teacher, without)]
        found, usual = (plan["memory"] for plan in plans)
        self.assertGreaterEqual(found["io"] - usual["io"], 11 * 5 * 8)


class Refusals(Taught):
    def refuse(self, code, text, *options):
        self.expect(self.train("checkpoint.folder=", *options, ranks=2), code, text)

    def test_other_data_and_models_are_refused(self):
        path = self.folder / "text"
        text = path.read_bytes()
        path.write_bytes(text[:-7] + bytes([text[-7] ^ 1]) + text[-6:])
        self.refuse(4, "text.top: its teacher read tokens with hash")
        self.expect(self.run_kzero("check", "--files", "deck.toml"), 4, "text.top: its teacher read tokens with hash")
        path.write_bytes(text + b"!")
        self.refuse(4, f"text.top: has {len(text) - 1} positions, but the data has {len(text)}; it is of other data")
        path.write_bytes(text)
        self.refuse(
            4, "text.top: its teacher read sequences of 11 tokens, but the training reads sequences of 9", "model.sequence=9"
        )
        self.refuse(4, "text.top: has 5 tokens of each position, but distill.top = 6", "distill.top=6")
        self.refuse(2, "distill.top must be at most model.vocab = 256, found 257", "distill.top=257")
        self.expect(self.train(*TEACHER, "model.vocab=260", "checkpoint.folder=more", *WITHOUT), 0)
        self.expect(self.run_kzero("convert", "more", "larger"), 0)
        self.teach("larger.top", model="larger")
        self.refuse(4, "larger.top: is of a teacher with 260 tokens, but model.vocab = 256", "distill.file=larger.top")

    def test_another_tokenizer_is_refused(self):
        def tokenizer(swapped):
            letters = [chr(c) for c in (*range(33, 127), *range(161, 173), *range(174, 256))] + [
                chr(256 + i) for i in range(68)
            ]
            letters[0], letters[1] = (letters[1], letters[0]) if swapped else (letters[0], letters[1])
            model = {"type": "BPE", "vocab": {letter: i for i, letter in enumerate(letters)}, "merges": []}
            level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
            return json.dumps({"version": "1.0", "added_tokens": [], "model": model, "pre_tokenizer": level, "decoder": level})

        raw = np.frombuffer((self.folder / "text").read_bytes(), np.uint8).astype("<u2")
        (self.folder / "data").mkdir()
        (self.folder / "data" / "text.bin").write_bytes(raw.tobytes())
        (self.folder / "data" / "tokenizer.json").write_text(tokenizer(False))
        (self.folder / "teacher" / "tokenizer.json").write_text(tokenizer(True))
        shared = ("data.files=data/text.bin", "data.format=raw", "data.token_bytes=2")
        read = ("--format", "raw", "--token-bytes", 2, "--sequence", 11)
        self.teach("raw.top", *read, file="data/text.bin")
        self.assertNotEqual(top_of(self.folder / "raw.top")[0][7], 0)
        self.refuse(4, "raw.top: is of a teacher whose tokenizer has hash", *shared, "distill.file=raw.top")
        # Other spaces are no other tokenizer.
        (self.folder / "teacher" / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer(False)), indent=1))
        self.teach("raw.top", *read, file="data/text.bin")
        self.expect(self.train(*shared, "distill.file=raw.top", "checkpoint.folder="), 0)

    def test_damage_is_refused(self):
        path = self.folder / "text.top"
        good = path.read_bytes()
        path.write_bytes(good[:-8])
        self.refuse(4, "text.top: its header counts")
        damaged = bytearray(good)
        damaged[-20] ^= 1  # of the last position, which shuffled windows reach
        path.write_bytes(damaged[:256] + bytes([damaged[256] ^ 1]) + damaged[257:])
        self.refuse(4, "text.top: position 0 is damaged", "data.order=sequential")
        path.write_bytes(b"")
        self.refuse(4, "text.top: is not a file of a teacher's probabilities")
        path.unlink()
        self.refuse(4, "text.top: cannot be opened")

    def test_a_restart_with_another_teacher_is_refused(self):
        self.expect(self.train("run.max_steps=2", ranks=2), 75)
        self.teach("text.top")
        self.expect(self.train("run.max_steps=2", ranks=2), 75)
        self.expect(
            self.train(
                "model.hidden=24",
                "train.steps=2",
                "distill.file=[]",
                "distill.weight=0.5",
                "distill.top=64",
                "checkpoint.folder=third",
            ),
            0,
        )
        self.expect(self.run_kzero("convert", "third", "third_model"), 0)
        self.teach("text.top", model="third_model")
        self.refuse_restart()

    def refuse_restart(self):
        self.expect(self.train(ranks=2), 2, "with other training data")


if __name__ == "__main__":
    unittest.main(verbosity=2)
