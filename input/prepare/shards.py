"""Writes the token files of prepare.py. They get their names only when all of them are complete.

A shard is 256 int32 (magic number, version, number of tokens, zeros) and then the tokens, little-endian: magic number
20240520 and version 1 for uint16, 20240801 and 7 for uint32, as dev/data/data_common.py of llm.c writes them.
"""

import contextlib
import errno
import os
import stat
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


def create(path):
    """Opens a new file for writing. A file or link of that name is replaced if this user made it, as a killed process does. Whoever made
    it otherwise could keep it open, or it could be another name of a file that has to stay: raises FileExistsError."""
    try:
        left = os.lstat(path)
    except FileNotFoundError:
        return open(path, "xb")
    if not (stat.S_ISREG(left.st_mode) or stat.S_ISLNK(left.st_mode)):
        raise FileExistsError(errno.EEXIST, "Is in the way, and is not a file", str(path))
    if left.st_uid != os.geteuid():
        raise FileExistsError(errno.EEXIST, f"Is in the way, and belongs to user {left.st_uid}; remove it", str(path))
    if left.st_nlink != 1:
        raise FileExistsError(errno.EEXIST, f"Is in the way, and has {left.st_nlink} names (hard links); remove it", str(path))
    os.unlink(path)
    return open(path, "xb")


class Output:
    """Files of one folder that appear together, in commit(), or not at all."""

    def __init__(self, folder):
        self.folder, self.names = Path(folder), []
        self.made = [one for one in (self.folder, *self.folder.parents) if not one.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)

    def partial(self, name):
        """The path of the file until it is complete."""
        return self.folder / (name + ".partial")

    def write(self, name, data):
        with self.create(name) as file:
            self.close(file, data)

    def create(self, name):
        """Opens the file of that name for writing, under its partial name."""
        file = create(self.partial(name))
        self.names.append(name)  # not before: what somebody else made is not discarded
        return file

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
        """Removes what commit() has not named, and the folders that were made for it if they are empty."""
        for name in self.names:
            self.partial(name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            for folder in self.made:
                folder.rmdir()


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
                self.file = self.output.create(f"{self.name}_{self.files:06}.bin")
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
