"""prepare.py from outside: which documents and conversations are for validation, and copies.

Usage:

    PREPARE=input/prepare.py python3 test_draw.py
"""

import importlib.util
import json
import random
import re
import sys
import unittest

import chat_templates as templates
from chat_case import ChatCase, chat, read_documents
from prepare_case import PREPARE, Prepared, run


def texts_of(count, seed=1):
    """Different texts of very different lengths."""
    draw = random.Random(seed)
    word = lambda: "".join(draw.choices("abcdefghij", k=draw.randint(1, 9)))
    return [f"{i} " + " ".join(word() for _ in range(int(10 ** draw.uniform(0.5, 2.2)))) + "\n" for i in range(count)]


class Texts(Prepared):
    def prepared(self, texts, *options, name="out"):
        """(the output, training, validation) as texts."""
        self.out = self.folder / name
        said = run(self.lines(texts=texts), "-o", self.out, "--vocab", 300, "--force", *options)
        return said, *(self.split(tokens) if (tokens := self.read(part)) else [] for part in ("train", "val"))

    def test_the_share_is_the_one_that_was_asked_for(self):
        texts = texts_of(2000)
        for share in (0.01, 0.05, 0.3):
            said, train, validation = self.prepared(texts, "--validation", share)
            found = sum(map(len, validation)) / sum(map(len, texts))
            self.assertTrue(0.95 * share - 1e-5 <= found <= share, found)
            counts = [int(re.search(rf"  {part} +(\d+) tokens", said).group(1)) for part in ("training", "validation")]
            self.assertEqual(counts, [len(self.read("train")), len(self.read("val"))])
            self.assertIn(f" tokens ({100 * counts[1] / sum(counts):.2f} %), {len(validation)} documents, 1 files\n", said)
            self.assertEqual("warning" in said, len(validation) < 20)
            self.assertEqual(len(train) + len(validation), len(texts))

    def test_names_order_and_other_documents_do_not_matter(self):
        texts = texts_of(1000)
        _, _, first = self.prepared(texts, "--validation", 0.1)
        _, _, second = self.prepared(texts[::-1], "--validation", 0.1)
        self.assertEqual(first, second[::-1])
        _, _, third = self.prepared(texts + texts_of(100, seed=2), "--validation", 0.1)
        self.assertLess(len(set(first) - set(third)), 0.2 * len(first))

    def test_validation_is_from_the_whole_corpus(self):
        _, _, validation = self.prepared(texts_of(1000), "--validation", 0.1)
        numbers = [int(text.split()[0]) for text in validation]
        self.assertEqual(numbers, sorted(numbers))
        self.assertTrue(all(any(begin <= n < begin + 250 for n in numbers) for begin in (0, 250, 500, 750)))

    def test_copies_are_on_one_side_and_counted(self):
        texts = texts_of(300)
        copies = texts[:100] + texts[50:100]
        said, train, validation = self.prepared(texts + copies, "--validation", 0.2)
        self.assertEqual(set(train) & set(validation), set())
        self.assertEqual(sorted(train + validation), sorted(texts + copies))
        share = 100 * sum(map(len, copies)) / sum(map(len, texts + copies))
        self.assertIn(
            f"\n150 of 450 documents ({share:.1f} % of the characters) are exact copies of others: --unique leaves them out\n",
            said,
        )
        self.assertNotIn("copies", self.prepared(texts)[0])

    def test_unique(self):
        texts = texts_of(300)
        _, train, validation = self.prepared(texts, "--validation", 0.1)
        said, fewer, other = self.prepared(texts + texts[::2], "--validation", 0.1, "--unique", name="unique")
        self.assertEqual((train, validation), (fewer, other))
        self.assertIn("are exact copies of others: they are left out\n", said)
        for file in self.out.iterdir():
            self.assertEqual(file.read_bytes(), (self.folder / "out" / file.name).read_bytes(), file.name)
        run(self.lines(), "-o", self.out, "--choices", "--unique", code=2)

    def test_copies_of_whole_files(self):
        for name in ("a/copyright.txt", "b/copyright.txt", "b/other.txt"):
            path = self.folder / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("another" if "other" in name else "one licence\n" * 200_000)  # longer than a part
        said = run(self.folder / "in", "-o", self.out, "--vocab", 300, "--unique", "--validation", 0)
        self.assertEqual([len(text) for text in self.split(self.read("train"))], [2_400_000, 7])
        self.assertIn("1 of 3 documents (50.0 % of the characters) are exact copies of others: they are left out", said)

    def test_few_long_documents_are_cut(self):
        texts = [f"{i}\n" + "a line of words\n" * 2000 for i in range(3)] + ["short\n"]
        said, train, validation = self.prepared(texts, "--validation", 0.05)
        self.assertEqual((len(train), sorted(map(len, validation))[0]), (3, 6))
        whole = [head + end for head in train for end in validation if head + end in texts]
        self.assertEqual(len(whole), 1)
        self.assertTrue(0.045 <= sum(map(len, validation)) / sum(map(len, texts)) <= 0.05)
        self.assertIn("\nwarning: validation has 2 different documents: a loss over fewer than 20 says little", said)
        twice = texts[0] * 2
        _, train, validation = self.prepared([twice, twice], "--validation", 0.1)
        self.assertEqual(len(set(train)), 1)
        self.assertEqual({head + end for head in train for end in validation}, {twice})
        self.assertNotIn("warning", self.prepared(texts, "--validation", 0)[0])


class Conversations(ChatCase):
    def setUp(self):
        super().setUp()
        self.template(templates.CHATML)

    def prepared(self, values, *options):
        """(the output, training, validation) as texts."""
        said = self.run_it(self.lines(*values), *options)
        files = [self.out / f"text_{part}.docs" for part in ("train", "val")]
        return said, *([self.text(tokens) for tokens, _ in read_documents(file)] if file.exists() else [] for file in files)

    def test_the_share_the_order_and_each_turn(self):
        values = [chat(text, "hello " * (i % 30 + 1), "hello there", text) for i, text in enumerate(texts_of(400))]
        said, train, validation = self.prepared(values, "--validation", 0.1)
        tokens = [sum(len(one) for one, _ in read_documents(self.out / f"text_{part}.docs")) for part in ("train", "val")]
        self.assertTrue(0.095 <= tokens[1] / sum(tokens) <= 0.1)
        self.assertNotIn("warning", said)
        self.assertEqual((len(train) + len(validation), len(set(train) & set(validation))), (400, 0))
        self.assertIn(f'files = ["{self.out}/text_train.docs"]\nvalidation_files = ["{self.out}/text_val.docs"]\n', said)
        _, _, other = self.prepared(values[::-1], "--validation", 0.1)
        self.assertEqual(other[::-1], validation)
        _, train, validation = self.prepared(values, "--validation", 0.1, "--each-turn")
        self.assertEqual(len(train) + len(validation), 800)
        first = lambda texts: {re.search(r"\d+", text).group() for text in texts}  # each conversation is on one side
        self.assertEqual(first(train) & first(validation), set())

    def test_the_date_does_not_matter(self):
        self.template(templates.LLAMA3)
        values = [chat(text, "hello") for text in texts_of(100)]
        numbers = []
        for date in ("2026-01-01", "2026-11-12"):
            _, _, validation = self.prepared(values, "--validation", 0.2, "--date", date)
            numbers.append([text.split("user<|end_header_id|>\n\n")[1].split()[0] for text in validation])
        self.assertEqual(*numbers)

    def test_copies(self):
        values = [chat(text, "hello") for text in texts_of(100)]
        same = [json.loads(json.dumps({"id": 7, **value})) for value in values[:50]]
        said, train, validation = self.prepared(values + same, "--validation", 0.2)
        self.assertEqual((len(train) + len(validation), len(set(train) & set(validation))), (150, 0))
        self.assertRegex(said, r"\n50 of 150 conversations \(\d+\.\d % of the tokens\) are exact copies of others: --unique")
        said, fewer, other = self.prepared(values + same, "--validation", 0.2, "--unique")
        self.assertIn("copies of others: they are left out\n", said)
        self.assertEqual(len(fewer) + len(other), 100)
        _, train, validation = self.prepared(values, "--validation", 0.2)
        self.assertEqual((train, validation), (fewer, other))

    def test_too_few(self):
        said, train, validation = self.prepared([chat("hello", f"a{i}") for i in range(9)], "--validation", 0.1)
        self.assertEqual((len(train), len(validation)), (9, 0))
        self.assertIn("\nwarning: validation has none of the conversations: a loss over fewer than 20", said)
        self.assertNotIn("validation_files", said)
        said, train, validation = self.prepared([chat("hello", f"a{i}") for i in range(10, 20)], "--validation", 0.1)
        self.assertEqual((len(train), len(validation)), (9, 1))
        self.assertIn("\nwarning: validation has 1 different conversations: a loss over", said)
        self.assertNotIn("warning", self.prepared([chat("hello", "a")])[0])


if __name__ == "__main__":
    if missing := [name for name in ("tokenizers", "jinja2") if importlib.util.find_spec(name) is None]:
        print(f"{sys.executable} has no {' and '.join(missing)}: bash cmake/debian.sh installs them in .deps/venv")
        sys.exit(77)
    assert PREPARE.is_file()
    unittest.main()
