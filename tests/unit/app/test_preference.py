"""Training on pairs of answers from outside: the same bits on any ranks, references that are refused, bad files, restarts."""

import struct
import unittest

from launch import DECK, LaunchTest, records, steps_of

KEYS = ("pairs", "chosen_reward", "rejected_reward", "accuracy")
HEAD = struct.Struct("<8sIIQQ")


def pairs(count=24, change=lambda documents: documents, mark=1):
    """A file of pairs: a prompt of two tokens without targets, then answers of different lengths."""
    documents = []
    for d in range(2 * count):
        length = 3 + (d * 5 + d // 2) % 4
        prompt = [d // 2 * 7 % 250, 40]
        documents.append([*prompt, *(((d * 11 + 3 * i) % 250) | 1 << 31 for i in range(length - 2))])
    documents = change(documents)
    starts = [sum(map(len, documents[:d])) for d in range(len(documents) + 1)]
    words = [word for one in documents for word in one]
    head = HEAD.pack(b"KZERODOC", 1, mark, len(words), len(documents)).ljust(256, b"\0")
    return head + struct.pack(f"<{len(starts)}Q{len(words)}I", *starts, *words)


def preferences_of(path):
    return steps_of(path), [tuple(r[k] for k in KEYS) for r in records(path, "step")]


class Preferred(LaunchTest):
    """A model that was trained on text for a few steps, exported, learns from pairs."""

    LOSS = "dpo"

    def setUp(self):
        super().setUp()
        self.expect(self.train("checkpoint.folder=first", "run.metrics="), 0)
        self.expect(self.run_kzero("convert", "first", "model"), 0)
        (self.folder / "answers.docs").write_bytes(pairs())
        deck = DECK.replace('files = ["text"]', 'files = ["answers.docs"]\nformat = "pairs"')
        deck = deck.replace("[model]", '[model]\ninitial = "model"')
        self.write_deck(deck + '[preference]\nloss = "dpo"\nreference = "answers.logprobs"\n')
        self.refer("answers.logprobs")

    def write_deck(self, text):
        (self.folder / "deck.toml").write_text(text)

    def refer(self, name, model="model", file="answers.docs"):
        self.expect(self.run_kzero("evaluate", model, file, "--log-probs", name), 0)


class Bits(Preferred):
    def test_they_depend_neither_on_ranks_nor_on_stages_nor_on_restarts(self):
        for loss in ("dpo", "orpo"):
            options = ("checkpoint.folder=", f"preference.loss={loss}", *(["preference.reference="] if loss == "orpo" else []))
            self.expect(self.train(*options, ranks=1), 0)
            one = preferences_of(self.folder / "metrics.jsonl")
            self.assertEqual(len(one[1]), 6)
            self.assertTrue(all(pairs > 0 and 0 <= accuracy <= 1 for pairs, _, _, accuracy in one[1]), one)
            for ranks, stage in ((2, 0), (3, 2), (4, 3)):
                with self.subTest(f"{loss}, {ranks} ranks, stage {stage}"):
                    self.expect(self.train(*options, f"zero.stage={stage}", ranks=ranks), 0)
                    self.assertEqual(preferences_of(self.folder / "metrics.jsonl"), one)
        self.expect(self.train("checkpoint.folder=", ranks=1), 0)
        one = preferences_of(self.folder / "metrics.jsonl")
        self.expect(self.train("run.max_steps=2", ranks=3), 75)
        self.expect(self.train(ranks=2), 0)
        self.assertEqual(preferences_of(self.folder / "metrics.jsonl"), one)

    def test_step_0_is_the_reference_itself(self):
        self.expect(self.train(ranks=2), 0)
        first = records(self.folder / "metrics.jsonl", "step")[0]
        self.assertAlmostEqual(first["loss"], 0.6931472, 5)
        self.assertAlmostEqual(first["chosen_reward"], 0, 5)
        self.assertAlmostEqual(first["rejected_reward"], 0, 5)

    def test_a_verified_step_agrees_and_16_bits_train(self):
        self.expect(self.train("checkpoint.folder=", "run.verify_every=2", ranks=2), 0)
        for precision in ("bf16", "fp16"):
            self.expect(self.train("checkpoint.folder=", f"train.precision={precision}", ranks=2), 0)
            losses = [step["loss"] for step in records(self.folder / "metrics.jsonl", "step")]
            self.assertTrue(all(0 < loss < 2 for loss in losses), losses)

    def test_adapters_learn_from_the_reference_of_their_base(self):
        options = ("lora.rank=2", 'lora.targets=["c_attn"]', "checkpoint.folder=")
        self.expect(self.train(*options, ranks=1), 0)
        one = preferences_of(self.folder / "metrics.jsonl")
        self.assertNotEqual(one[0][0][1], one[0][-1][1])
        self.expect(self.train(*options, "zero.stage=3", ranks=3), 0)
        self.assertEqual(preferences_of(self.folder / "metrics.jsonl"), one)

    def test_tensor_ranks_send_what_the_plan_says(self):
        self.expect(self.train("checkpoint.folder=", ranks=1), 0)
        one = preferences_of(self.folder / "metrics.jsonl")
        for options in ((), ("model.sequence_parallel=true",)):
            with self.subTest(options):
                self.expect(self.train("checkpoint.folder=", "grid.tensor=3", *options, ranks=3), 0)
                for found, expected in zip(preferences_of(self.folder / "metrics.jsonl")[1], one[1]):
                    self.assertEqual(found[0], expected[0])
                    self.assertAlmostEqual(found[1], expected[1], 5)
                    self.assertAlmostEqual(found[2], expected[2], 5)
                (end,) = records(self.folder / "metrics.jsonl", "end")
                rows = [row for row in end["traffic"] if row["group"] == "tensor"]
                self.assertTrue(rows)
                for row in rows:
                    self.assertEqual(row["elements_per_step"], row["expected_elements_per_step"], row)


class References(Preferred):
    def refuse(self, code, text, *options):
        self.expect(self.train("checkpoint.folder=", *options, ranks=2), code, text)

    def test_other_models_and_files_are_refused(self):
        self.expect(self.train("train.steps=2", "checkpoint.folder=second", ranks=1), 0)
        self.expect(self.run_kzero("convert", "second", "later"), 0)
        self.refer("later.logprobs", "later")
        self.refuse(2, "later.logprobs\": has log-probabilities of weights with hash", "preference.reference=later.logprobs")
        self.refuse(2, "answers.logprobs\": has log-probabilities of weights with hash", "model.initial=later")
        self.expect(self.train("model.initial=later", "preference.reference=later.logprobs", "checkpoint.folder="), 0)
        (self.folder / "others.docs").write_bytes(pairs(22))
        self.refuse(4, "answers.logprobs: has log-probabilities of 48 documents", "data.files=others.docs")
        # One bit of one token.
        data = bytearray((self.folder / "answers.docs").read_bytes())
        data[-4] ^= 1
        (self.folder / "answers.docs").write_bytes(data)
        self.refuse(4, "answers.logprobs: has log-probabilities of 48 documents with hash")

    def test_damage_is_refused(self):
        path = self.folder / "answers.logprobs"
        good = path.read_bytes()
        path.write_bytes(good[:-8])
        self.refuse(4, "answers.logprobs: its header counts 48 documents")
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        self.refuse(4, "answers.logprobs: its values are damaged")
        path.write_bytes(b"")
        self.refuse(4, "answers.logprobs: is not a file of log-probabilities")
        path.unlink()
        self.refuse(4, "answers.logprobs: ")

    def test_a_restart_with_another_reference_is_refused(self):
        self.expect(self.train("run.max_steps=2", ranks=2), 75)
        path = self.folder / "answers.logprobs"
        self.refer("again", "model")
        self.assertEqual((self.folder / "again").read_bytes(), path.read_bytes())
        self.expect(self.run_kzero("evaluate", "model", "answers.docs", "--precision", "bf16", "--log-probs", path), 0)
        self.assertNotEqual((self.folder / "again").read_bytes(), path.read_bytes())
        self.expect(self.train(ranks=2), 2, "with other training data")


class BadPairs(Preferred):
    def refuse(self, data, text, *options, code=4):
        (self.folder / "bad.docs").write_bytes(data)
        for command in (("check", "--files", "deck.toml"), ("train", "deck.toml")):
            result = self.run_kzero(*command, "data.files=bad.docs", *options, ranks=2 if command[0] == "train" else None)
            self.expect(result, code, text)

    def test_each_fault_is_named(self):
        self.refuse(pairs(change=lambda d: d[:-1]), "bad.docs: has 47 documents, but a file of pairs has a rejected answer")
        self.refuse(
            pairs(change=lambda d: [*d[:7], [one & ~(1 << 31) for one in d[7]], *d[8:]]),
            "bad.docs: document 7 (counted from 0), the rejected answer of pair 3, has no target",
        )
        self.refuse(
            pairs(change=lambda d: [*d[:4], d[4] + d[5], *d[5:]]),
            "bad.docs: pair 2 (counted from 0) has 17 tokens in its two documents, more than model.sequence = 11",
        )
        self.refuse(pairs()[:-4], "bad.docs: its header counts")
        self.refuse(pairs(mark=0), 'bad.docs: data.format = "pairs", but it looks like a file of documents; set data.format')
        documents = ("data.format=documents", "preference.loss=none", "preference.reference=")
        self.refuse(pairs(), 'but it looks like a file of pairs of documents; set data.format = "pairs"', *documents)


if __name__ == "__main__":
    unittest.main(verbosity=2)
