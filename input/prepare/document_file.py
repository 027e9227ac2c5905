"""Writes documents with targets, in the format of docs/data.md, "Document files".

A file is a header of 256 bytes (the text KZERODOC, uint32 version 1, uint32 kind, uint64 number of tokens n, uint64 number of
documents d, zeros), d + 1 uint64, the first token of each document and n, and n uint32: the token in bits 0 to 30, and bit 31 set
where the token is a target. In kind 1, documents 2i and 2i + 1 are a pair. In kind 2, d float32, the weights of the documents, come
before the tokens. Otherwise the kind is 0. Little-endian.
"""

import struct
from array import array

from .shards import little_endian

MAGIC, VERSION, HEADER_BYTES = b"KZERODOC", 1, 256
PLAIN, PAIRS, WEIGHTED = 0, 1, 2  # kinds
TARGET = 1 << 31


class Documents:
    """Documents in memory: 4 bytes a token."""

    def __init__(self):
        self.starts, self.tokens, self.weights = array("Q", [0]), array("I"), array("f")

    def __len__(self):
        return len(self.starts) - 1

    def append(self, tokens, weight=1.0):
        """Appends a document of at least one token, an array of uint32 with the bit TARGET set where a token is a target."""
        self.tokens.extend(tokens)
        self.starts.append(len(self.tokens))
        self.weights.append(weight)

    def length(self, number):
        return self.starts[number + 1] - self.starts[number]


def count_targets(tokens):
    return sum(token >> 31 for token in tokens)


def write_documents(output, name, documents, numbers, kind=PLAIN):
    """Writes the documents of these numbers; returns their tokens."""
    starts = array("Q", [0])
    for number in numbers:
        starts.append(starts[-1] + documents.length(number))
    with output.create(name) as file:
        head = struct.pack("<8sIIQQ", MAGIC, VERSION, kind, starts[-1], len(numbers))
        file.write(head.ljust(HEADER_BYTES, b"\0"))
        file.write(little_endian(starts))
        if kind == WEIGHTED:
            file.write(little_endian(array("f", (documents.weights[number] for number in numbers))))
        for number in numbers:
            file.write(little_endian(documents.tokens[documents.starts[number] : documents.starts[number + 1]]))
        output.close(file)
    return starts[-1]
