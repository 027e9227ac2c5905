"""Writes the token files of prepare.py. They get their names only when all of them are complete.

A shard is 256 int32 (magic number, version, number of tokens, zeros) and then the tokens, little-endian: magic number
20240520 and version 1 for uint16, 20240801 and 7 for uint32, as dev/data/data_common.py of llm.c writes them.
"""

import os
import struct
import sys
from array import array
from pathlib import Path

HEADERS = {2: (20240520, 1), 4: (20240801, 7)}
TYPES = {2: "H", 4: "I"}


def token_array(width, tokens=()):
    return array(TYPES[width], tokens)


def little_endian(tokens):
    if sys.byteorder == "big":
        tokens = array(tokens.typecode, tokens)
        tokens.byteswap()
    return tokens.tobytes()


def header(*numbers):
    return struct.pack("<256i", *numbers, *[0] * (256 - len(numbers)))


class Output:
    """Files of one folder that appear together, in commit(), or not at all."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.names = []

    def partial(self, name):
        """The path to which the file is written until it is complete."""
        if name not in self.names:
            self.names.append(name)
        return self.folder / (name + ".partial")

    def write(self, name, data):
        with open(self.partial(name), "wb") as file:
            self.close(file, data)

    @staticmethod
    def close(file, data=b""):
        file.write(data)
        file.flush()
        os.fsync(file.fileno())

    def commit(self, replaced=()):
        """Gives the files their names. Removes files of an earlier run, `replaced`, that were not written again."""
        for path in replaced:
            if path.name not in self.names:
                path.unlink(missing_ok=True)
        for name in self.names:
            os.replace(self.partial(name), self.folder / name)
        self.names = []
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def discard(self):
        for name in self.names:
            self.partial(name).unlink(missing_ok=True)


class Shards:
    """Files NAME_000000.bin and following, of `tokens_each` tokens except the last."""

    def __init__(self, output, name, width, tokens_each):
        self.output, self.name, self.width, self.tokens_each = output, name, width, tokens_each
        self.count = 0  # tokens of all files
        self.files = 0
        self.file, self.filled = None, 0

    def write(self, data):
        """Appends tokens, as bytes."""
        at = 0
        while at < len(data):
            if self.file is None:
                self.file = open(self.output.partial(f"{self.name}_{self.files:06}.bin"), "wb")
                self.file.write(header())
                self.files, self.filled = self.files + 1, 0
            part = data[at : at + (self.tokens_each - self.filled) * self.width]
            self.file.write(part)
            at += len(part)
            self.filled += len(part) // self.width
            self.count += len(part) // self.width
            if self.filled == self.tokens_each:
                self.finish()

    def finish(self):
        if self.file is not None:
            self.file.seek(0)
            self.output.close(self.file, header(*HEADERS[self.width], self.filled))
            self.file.close()
            self.file = None
