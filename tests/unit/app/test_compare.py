"""kzero compare from outside: two models' answers are those of kzero generate, on any ranks and in any terminal."""

import json
import unittest

from launch import LaunchTest

PROMPTS = ("12 bo", "b", "of beer")


class Compare(LaunchTest):
    def setUp(self):
        super().setUp()
        self.expect(self.train("train.steps=40"), 0)
        self.expect(self.train("train.steps=12", "checkpoint.folder=young", "run.metrics="), 0)
        (self.folder / "prompts.jsonl").write_text("".join(json.dumps({"prompt": p}) + "\n" for p in PROMPTS))

    def compare(self, *arguments, models=("saved", "young"), prompts="prompts.jsonl", **options):
        return self.run_kzero("compare", *models, prompts, *map(str, arguments), **options)

    def pairs(self, *arguments, **options):
        shown = self.expect(self.compare("--json", *arguments, **options), 0)
        return [json.loads(line) for line in shown.stdout.splitlines()]

    def test_answers_are_those_of_generate(self):
        def lines(source, *options):
            command = ("generate", source, "--prompts", "prompts.jsonl", "--json", "--temperature", "0", *options)
            return [json.loads(line) for line in self.expect(self.run_kzero(*command), 0).stdout.splitlines()]

        for options in ((), ("--max-tokens", "3"), ("--stop", "e")):
            with self.subTest(options):
                expected = [{"a": a, "b": b} for a, b in zip(lines("saved", *options), lines("young", *options))]
                self.assertEqual(self.pairs(*options), expected)
                self.assertTrue(any(one["a"] != one["b"] for one in expected))

    def test_neither_ranks_nor_batches_show(self):
        for options in ((), ("--json",)):
            expected = self.expect(self.compare(*options), 0).stdout
            self.assertEqual(self.expect(self.compare("--batch", 1, *options), 0).stdout, expected)
            self.assertEqual(self.expect(self.compare("--tensor", 1, *options, ranks=2), 0).stdout, expected)
            self.assertEqual(self.expect(self.compare("--tensor", 1, *options, ranks=4), 0).stdout, expected)
            self.assertEqual(self.expect(self.compare(*options, ranks=3), 0).stdout, expected)

    def test_columns_are_readable(self):
        for columns in (80, 41):
            width = () if columns == 80 else ("--columns", columns)
            shown = self.expect(self.compare(*width), 0).stdout
            lines = shown.splitlines()
            self.assertEqual(lines[:4], ["A = saved", "B = young", "--- prompt 1", PROMPTS[0]])
            self.assertTrue(all(len(line) <= columns for line in lines), shown)
            half = (columns - 3) // 2
            self.assertEqual(lines[4][half : half + 3], " | ")
            self.assertTrue(lines[4].startswith("A: 6 tokens, length"), lines[4])
            self.assertTrue(lines[4][half + 3 :].startswith("B: 6 tokens, length"), lines[4])
            same = sum(one["a"]["text"] == one["b"]["text"] for one in self.pairs())
            self.assertEqual(lines[-1], f"--- {same} of 3 answers are the same")
        shown = self.expect(self.compare(models=("saved", "saved")), 0).stdout
        self.assertTrue(shown.endswith("--- 3 of 3 answers are the same\n"), shown)

    def test_a_folder_of_hugging_face_answers_too(self):
        self.expect(self.run_kzero("convert", "saved", "hf"), 0)
        (one, *_) = self.pairs("--tokenizer", "bytes", models=("saved", "hf"))
        self.assertEqual(one["a"], one["b"])

    def test_mistakes_are_one_message(self):
        (self.folder / "bad.jsonl").write_text('{"prompt": 7}\n')
        for code, arguments, text in (
            (4, {"models": ("saved", "gone")}, "gone: does not exist"),
            (4, {"models": ("gone", "saved")}, "gone: does not exist"),
            (4, {"prompts": "bad.jsonl"}, "bad.jsonl:1: prompt must be a text, found 7"),
            (4, {"prompts": "none.jsonl"}, "none.jsonl: cannot be opened"),
        ):
            with self.subTest(text):
                shown = self.expect(self.compare(**arguments), code, text)
                self.assertEqual(shown.stdout, "")
        self.expect(self.compare("--columns", 19), 2, "--columns")
        self.expect(self.compare("--temperature", 1), 2, "there is no option --temperature")
        self.expect(self.run_kzero("compare", "saved", "young"), 2, "prompts")


if __name__ == "__main__":
    unittest.main(verbosity=2)
