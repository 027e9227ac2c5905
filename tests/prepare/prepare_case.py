"""Shared by the tests of text: runs of prepare.py, a reader of token files, and documents to read."""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest
from array import array
from pathlib import Path

PREPARE = Path(os.environ["PREPARE"]).resolve()
END = "<|endoftext|>"


def run(*arguments, code=0, **options):
    """The output of prepare.py, on standard output or, if it fails, on standard error."""
    done = subprocess.run(
        [sys.executable, "-B", PREPARE, *map(str, arguments)], capture_output=True, text=True, check=False, **options
    )
    if done.returncode != code:
        raise AssertionError(f"exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
    return done.stderr if code else done.stdout


def tokens_of(path):
    """The tokens of a shard, by llm.c's header."""
    data = path.read_bytes()
    magic, version, count, *rest = struct.unpack("<256i", data[:1024])
    kind = {(20240520, 1): "H", (20240801, 7): "I"}[magic, version]
    tokens = array(kind, data[1024:])
    assert len(tokens) == count and not any(rest)
    return list(tokens)


def documents(text, count):
    """Texts of words of `text`, and of what is awkward."""
    draw = random.Random(1)
    words = [word for word in text.split(" ") if word]  # no text may be empty: prepare.py leaves it out
    texts = [" ".join(draw.choices(words, k=draw.randint(1, 60))) for _ in range(count)]
    return ["e\u0301 \u4e2d\u6587 \U0001f600\r\n\t\n", f"not the end: {END} of it", "\x00", "a" * 5000] + texts


class Prepared(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.text = (PREPARE.parents[1] / "docs/architecture.md").read_text()
        self.out = self.folder / "out"
        self.addTypeEqualityFunc(list, self.same_lists)

    def same_lists(self, found, expected, msg=None):  # unittest names the last one
        """Names the first difference. unittest compares all lines of two lists, which takes minutes for a file's tokens."""
        if found == expected:
            return
        pairs = enumerate(zip(found, expected))
        at = next((i for i, (one, other) in pairs if one != other), min(len(found), len(expected)))
        near = [f"{len(one)} elements, from {at} on {one[at : at + 8]!r:.400}" for one in (found, expected)]
        self.fail(self._formatMessage(msg, "\nnot as expected:\n".join(near)))

    def lines(self, name="a.jsonl", texts=None, key="text"):
        path = self.folder / name
        path.write_text("".join(json.dumps({key: text}) + "\n" for text in texts or documents(self.text, 60)))
        return path

    def read(self, part, out=None, name="text"):
        return [token for file in sorted((out or self.out).glob(f"{name}_{part}_*.bin")) for token in tokens_of(file)]

    def split(self, tokens):
        """The documents of a stream of tokens: each begins with the end token."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.out / "tokenizer.json"))
        end = tokenizer.token_to_id(END)
        self.assertEqual(tokens[0], end)
        texts = [[]]
        for token in tokens[1:]:
            if token == end:
                texts.append([])
            else:
                texts[-1].append(token)
        return [tokenizer.decode(text, skip_special_tokens=False) for text in texts]
