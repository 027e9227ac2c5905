"""Shared by the tests of chats: a small tokenizer with special tokens, runs of prepare.py, and a reader of document files."""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from array import array
from pathlib import Path

PREPARE = Path(os.environ["PREPARE"]).resolve()
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
WORDS = "hello hello there, what is a rank? A rank owns a shard. The memory of a node. Today is the day.\n" * 50
TARGET = 1 << 31


def turn(role, content, **others):
    return {"role": role, "content": content, **others}


def chat(*contents, **others):
    """A line with messages of the user and the assistant in turns."""
    return {"messages": [turn(("user", "assistant")[i % 2], text) for i, text in enumerate(contents)], **others}


def make_tokenizer(path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(
        trim_offsets=True
    )  # removes spaces from offsets, as those of GPT-2 and Qwen
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=340, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([WORDS], trainer)
    tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.save(str(path))


def read_weights(path):
    """The weights of a document file that has some, by the text of docs/data.md."""
    data = path.read_bytes()
    kind, _, documents = struct.unpack("<IQQ", data[12:32])
    assert kind == 2
    begin = 256 + 8 * (documents + 1)
    return list(struct.unpack(f"<{documents}f", data[begin : begin + 4 * documents]))


def read_documents(path):
    """[(tokens, targets as booleans)] of a document file, by the text of docs/data.md."""
    data = path.read_bytes()
    magic, version, kind, tokens, documents = struct.unpack("<8sIIQQ", data[:32])
    assert (magic, version) == (b"KZERODOC", 1) and kind in (0, 2) and not any(data[32:256])
    starts = struct.unpack(f"<{documents + 1}Q", data[256 : 256 + 8 * (documents + 1)])
    numbers = struct.unpack(f"<{tokens}I", data[256 + 8 * (documents + 1) + 2 * kind * documents :])
    assert starts[0] == 0 and starts[-1] == tokens and all(a < b for a, b in zip(starts, starts[1:]))
    found = [numbers[begin:end] for begin, end in zip(starts, starts[1:])]
    assert not any(one[0] & TARGET for one in found)
    return [(array("I", (n & ~TARGET for n in one)), [bool(n & TARGET) for n in one]) for one in found]


class ChatCase(unittest.TestCase):
    def setUp(self):
        from tokenizers import Tokenizer

        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.model, self.out = self.folder / "model", self.folder / "out"
        self.model.mkdir()
        make_tokenizer(self.model / "tokenizer.json")
        self.tokenizer = Tokenizer.from_file(str(self.model / "tokenizer.json"))
        self.configure()

    def configure(self, **others):
        tokens = {"bos_token": {"content": "<s>"}, "eos_token": "<|endoftext|>", "pad_token": None}
        (self.model / "tokenizer_config.json").write_text(json.dumps({**tokens, **others}))

    def template(self, text):
        (self.model / "chat_template.jinja").write_text(text)

    def lines(self, *values, name="chats.jsonl"):
        path = self.folder / name
        path.write_bytes(b"".join((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in values))
        return path

    def run_it(self, path, *options, code=0, **others):
        """The output of prepare.py, on standard output or, if it fails, on standard error."""
        given = (path, "-o", self.out, "--chat", "--tokenizer", self.model, "--validation", 0, "--force", *options)
        command = [sys.executable, "-B", PREPARE, *map(str, given)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **others)
        if done.returncode != code:
            raise AssertionError(f"exit code {done.returncode}, not {code}: {done.stdout}{done.stderr}")
        return done.stderr if code else done.stdout

    def documents(self, *values, options=()):
        """[(text, texts of consecutive targets)] of the documents that prepare.py makes of these lines."""
        self.run_it(self.lines(*values), *options)
        return [self.decoded(*one) for one in read_documents(self.out / "text_train.docs")]

    def decoded(self, tokens, targets):
        runs = []
        for at, (token, is_target) in enumerate(zip(tokens, targets)):
            if is_target:
                if not targets[at - 1]:
                    runs.append([])
                runs[-1].append(token)
        return self.text(tokens), [self.text(run) for run in runs]

    def text(self, tokens):
        return self.tokenizer.decode(list(tokens), skip_special_tokens=False)

    def refused(self, *values, options=()):
        """The message about lines that are refused. Nothing is written."""
        said = self.run_it(self.lines(*values), *options, code=4)
        self.assertEqual([file.name for file in self.out.glob("*")], [])
        return said
