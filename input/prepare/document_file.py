"""Writes documents with targets, in the format of docs/data.md, "Document files".

A file is a header of 256 bytes (the text KZERODOC, uint32 version 1, uint32 0, or 1 if documents 2i and 2i + 1 are a pair, uint64 number of tokens n, uint64 number of
documents d, zeros), d + 1 uint64, the first token of each document and n, and n uint32: the token in bits 0 to 30, and bit 31 set
where the token is a target. Little-endian.
"""

import struct
from array import array

from .shards import little_endian

MAGIC, VERSION, HEADER_BYTES = b"KZERODOC", 1, 256
TARGET = 1 << 31


class Documents:
    """Documents in memory: 4 bytes a token."""

    def __init__(self):
        self.starts, self.tokens = array("Q", [0]), array("I")

    def __len__(self):
        return len(self.starts) - 1

    def append(self, tokens):
        """Appends a document of at least one token, an array of uint32 with the bit TARGET set where a token is a target."""
        self.tokens.extend(tokens)
        self.starts.append(len(self.tokens))

    def length(self, number):
        return self.starts[number + 1] - self.starts[number]


def count_targets(tokens):
    return sum(token >> 31 for token in tokens)


def write_documents(output, name, documents, numbers, are_pairs=False):
    """Writes the documents of these numbers; returns their tokens."""
    starts = array("Q", [0])
    for number in numbers:
        starts.append(starts[-1] + documents.length(number))
    with output.create(name) as file:
        head = struct.pack("<8sIIQQ", MAGIC, VERSION, int(are_pairs), starts[-1], len(numbers))
        file.write(head.ljust(HEADER_BYTES, b"\0"))
        file.write(little_endian(starts))
        for number in numbers:
            file.write(little_endian(documents.tokens[documents.starts[number] : documents.starts[number + 1]]))
        output.close(file)
    return starts[-1]
