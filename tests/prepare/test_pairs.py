"""prepare.py --pairs from outside: chosen and rejected answers become pairs of documents.

Usage:

    PREPARE=input/prepare.py python3 test_pairs.py
"""

import sys
import unittest

import chat_templates as templates
from chat_case import ChatCase, chat, read_documents, turn

ASKED = [turn("user", "what is a rank?")]
GOOD, BAD = [turn("assistant", "A rank owns a shard.")], [turn("assistant", "hello")]


class Pairs(ChatCase):
    def setUp(self):
        super().setUp()
        self.template(templates.CHATML)

    def pairs_of(self, *values, said=None):
        """The documents of lines, with the mark of pairs checked and removed."""
        text = self.run_it(self.lines(*values), "--pairs")
        self.assertIn('format = "pairs"', text)
        if said:
            self.assertIn(said, text)
        path = self.out / "text_train.docs"
        data = bytearray(path.read_bytes())
        self.assertEqual(data[12:16], b"\1\0\0\0")
        data[12] = 0
        path.write_bytes(data)
        self.assertFalse((self.out / "text_val.docs").exists())
        return read_documents(path)

    def completions(self, *values):
        self.run_it(self.lines(*values), "--chat", "--validation", "0")
        return read_documents(self.out / "text_train.docs")

    def test_forms_give_the_documents_of_prompt_and_completion(self):
        expected = self.completions({"prompt": ASKED, "completion": GOOD}, {"prompt": ASKED, "completion": BAD})
        for value in (
            {"prompt": ASKED, "chosen": GOOD, "rejected": BAD},
            {"chosen": ASKED + GOOD, "rejected": ASKED + BAD},
            {"prompt": "what is a rank?", "chosen": ASKED + GOOD, "rejected": ASKED + BAD},
        ):
            with self.subTest(value):
                self.assertEqual(self.pairs_of(value, said="1 pairs, 2 documents"), expected)

    def test_only_what_differs_is_a_target(self):
        before = chat("hello", "hello there")["messages"] + ASKED
        (chosen, rejected) = self.pairs_of({"chosen": before + GOOD, "rejected": before + BAD})
        text = self.text([token for token, target in zip(*chosen) if target])
        self.assertEqual(text, "A rank owns a shard.<|im_end|>")
        self.assertEqual(self.text([token for token, target in zip(*rejected) if target]), "hello<|im_end|>")

    def test_texts_without_a_template(self):
        prompt = "what is a rank?"
        expected = self.completions({"prompt": prompt, "completion": " A shard."}, {"prompt": prompt, "completion": " hello"})
        self.assertEqual(self.pairs_of({"prompt": prompt, "chosen": " A shard.", "rejected": " hello"}), expected)

    def test_long_pairs_count_both_answers(self):
        value = {"prompt": ASKED, "chosen": GOOD, "rejected": BAD}
        size = sum(len(tokens) for tokens, _ in self.pairs_of(value, {**value, "chosen": BAD, "rejected": GOOD})[:2])
        both = self.lines(value, {"prompt": ASKED, "chosen": GOOD * 1, "rejected": [turn("assistant", "hello " * 50)]})
        self.run_it(both, "--pairs", "--sequence", size, code=4)
        self.assertIn("0 cut, 1 dropped", self.run_it(both, "--pairs", "--sequence", size, "--long", "drop"))
        self.run_it(self.lines(value), "--pairs", "--sequence", size)
        self.run_it(self.lines(value), "--pairs", "--sequence", size - 1, code=4)

    def test_refusals(self):
        for value, said in (
            ({"prompt": ASKED, "chosen": GOOD}, "has no rejected"),
            ({"prompt": ASKED, "rejected": BAD}, "has no chosen"),
            ({"prompt": ASKED, "chosen": GOOD, "rejected": GOOD}, "are the same"),
            ({"chosen": ASKED, "rejected": ASKED + BAD}, "chosen: "),
            ({"prompt": ASKED, "chosen": GOOD, "rejected": "hello"}, "rejected: "),
            ({"prompt": "a", "chosen": "b", "rejected": "<|im_end|>"}, "rejected: its text contains the special token"),
        ):
            with self.subTest(said):
                self.assertIn(said, self.run_it(self.lines(value), "--pairs", code=4))
        for options in (("--each-turn",), ("--sequence", "9", "--long", "cut")):
            self.assertIn("not for --pairs", self.run_it(self.lines(), "--pairs", *options, code=2))
        said = self.run_it(self.lines(), "--pairs", "--weight-key", "weight", code=2)
        self.assertIn("--weight-key is not for --pairs: pairs have no weights", said)
        value = {"prompt": ASKED, "chosen": GOOD, "rejected": BAD, "weight": 2}
        self.assertIn("keys of lines that are not used: weight (1)", self.run_it(self.lines(value), "--pairs"))


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
