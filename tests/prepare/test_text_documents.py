"""prepare.py --documents from outside: documents of text, whose tokens are all targets.

Usage:

    PREPARE=input/prepare.py python3 test_text_documents.py
"""

import importlib.util
import json
import sys
import unittest

from chat_case import PREPARE, make_tokenizer, read_documents
from prepare_case import Prepared, documents, run

END = "<|endoftext|>"


class TextDocuments(Prepared):
    def setUp(self):
        from tokenizers import Tokenizer

        super().setUp()
        make_tokenizer(self.folder / "tokenizer.json")
        self.tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))

    def prepared(self, path, *options, tokenizer="tokenizer.json"):
        """(the output, [(tokens, targets)] of training)."""
        given = ("-o", self.out, "--tokenizer", self.folder / tokenizer, "--documents", "--validation", 0, "--force")
        said = run(path, *given, *options)
        return said, [(list(tokens), targets) for tokens, targets in read_documents(self.out / "text_train.docs")]

    def expected(self, text, before=(END,), after=(END,)):
        self.tokenizer.encode_special_tokens = True  # the text of a special token stays text
        ids = [self.tokenizer.token_to_id(token) for token in before]
        ids += self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids + [self.tokenizer.token_to_id(token) for token in after]

    def test_all_tokens_and_the_end_are_targets(self):
        texts = documents(self.text, 60)
        said, found = self.prepared(self.lines(texts=texts))
        self.assertEqual([tokens for tokens, _ in found], [self.expected(text) for text in texts])
        self.assertTrue(all(targets == [False] + [True] * (len(targets) - 1) for _, targets in found))
        self.assertIn(f'format = "documents"\nfiles = ["{self.out}/text_train.docs"]\n', said)
        self.assertIn(
            f"  training    {sum(len(tokens) for tokens, _ in found)} tokens (100.00 %), 64 documents, 1 files\n", said
        )

    def test_long_documents_are_divided_and_each_token_is_a_target_once(self):
        texts = documents(self.text, 20)
        for longest in (2, 7, 64):
            said, found = self.prepared(self.lines(texts=texts), "--sequence", longest)
            again, targets = [], []
            for tokens, is_target in found:
                self.assertLessEqual(len(tokens), longest)
                self.assertEqual(is_target, [False] + [True] * (len(tokens) - 1))
                if again and targets and tokens[0] == again[-1] and not self.is_complete(again, texts):
                    again += tokens[1:]
                else:
                    again += tokens
                targets += is_target
            self.assertEqual(again, [token for text in texts for token in self.expected(text)])
            self.assertEqual(sum(targets), sum(len(self.expected(text)) - 1 for text in texts))
            count = sum(len(self.expected(text)) > longest for text in texts)
            self.assertIn(f"\n{count} documents are longer than --sequence, and are divided\n", said)

    def is_complete(self, tokens, texts):
        lengths, total = set(), 0
        for text in texts:
            total += len(self.expected(text))
            lengths.add(total)
        return len(tokens) in lengths

    def test_the_tokens_that_the_tokenizer_adds(self):
        rules = json.loads((self.folder / "tokenizer.json").read_text())
        first = self.tokenizer.token_to_id("<s>")
        rules["post_processor"] = {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [first], "tokens": ["<s>"]}},
        }
        (self.folder / "adds.json").write_text(json.dumps(rules))
        path = self.lines(texts=["hello there"])
        ((tokens, _),) = self.prepared(path, tokenizer="adds.json")[1]
        self.assertEqual(tokens, self.expected("hello there", before=("<s>",)))
        ((tokens, _),) = self.prepared(path, "--no-special-tokens", tokenizer="adds.json")[1]
        self.assertEqual(tokens, self.expected("hello there"))

    def test_files_in_parts_and_several_processes(self):
        text = self.text * (3 * 2**20 // len(self.text))
        (self.folder / "long.txt").write_bytes(text.encode())
        _, found = self.prepared(self.folder / "long.txt", "--processes", 1)
        self.assertEqual([tokens for tokens, _ in found], [self.expected(text)])
        one = (self.out / "text_train.docs").read_bytes()
        self.prepared(self.folder / "long.txt", "--processes", 3)
        self.assertEqual((self.out / "text_train.docs").read_bytes(), one)

    def test_validation(self):
        texts = documents(self.text, 200)
        said, train = self.prepared(self.lines(texts=texts), "--validation", 0.2)
        validation = [list(tokens) for tokens, _ in read_documents(self.out / "text_val.docs")]
        self.assertEqual(sorted([tokens for tokens, _ in train] + validation), sorted(map(self.expected, texts)))
        self.assertIn(f'\nvalidation_files = ["{self.out}/text_val.docs"]\n', said)

    def test_command_lines(self):
        path = self.lines()
        for wrong in (["--chat"], ["--choices"], ["--shard-tokens", "5"], ["--long", "cut", "--sequence", "9"]):
            run(path, "-o", self.out, "--documents", *wrong, code=2)
        said = run(path, "-o", self.out, "--documents", "--sequence", 1, "--vocab", 300, code=4)
        self.assertIn("--sequence 1: a document has at least 2 tokens", said)


if __name__ == "__main__":
    if missing := [name for name in ("tokenizers", "jinja2") if importlib.util.find_spec(name) is None]:
        print(f"{sys.executable} has no {' and '.join(missing)}: bash cmake/debian.sh installs them in .deps/venv")
        sys.exit(77)
    assert PREPARE.is_file()
    unittest.main()
