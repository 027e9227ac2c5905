"""Draws the documents for validation by a hash of their content, and finds exact copies.

The hash does not depend on names, order or processes, so the same documents are drawn again, also if files are added or renamed.
Copies have one hash: all of them are for training, or all for validation. 25 bytes a document are kept in memory.
"""

import hashlib
import itertools
from array import array

from .documents import InputError

TRAINING, VALIDATION, COPY, CUT = range(4)  # COPY: left out. CUT: its beginning is for training, its end for validation
ENOUGH = 0.95  # of what is asked for ends the draw
FEW = 20  # different documents: a loss over fewer says little about others


def hasher():
    return hashlib.blake2b(digest_size=8)


def key_of(content):
    """The number that a hasher's content gives."""
    return int.from_bytes(content.digest(), "big")


class Population:
    """The documents from which is drawn, in the order of the input: their keys and sizes. Sizes are characters or tokens."""

    def __init__(self):
        self.buckets = [array("Q") for _ in range(256)]  # by the first byte of the key: key, size and number of each document
        self.count, self.total = 0, 0

    def add(self, key, size):
        self.buckets[key >> 56].extend((key, size, self.count))
        self.count, self.total = self.count + 1, self.total + size

    def groups(self):
        """(size, numbers in ascending order) of each different document, in the order of their keys."""
        for bucket in self.buckets:
            documents = sorted(zip(*[iter(bucket)] * 3))
            for (_, size), group in itertools.groupby(documents, key=lambda document: document[:2]):
                yield size, [number for _, _, number in group]


class Draw:
    """The side of each document of a Population, by its number: TRAINING, VALIDATION, COPY or CUT."""

    def __init__(self, population, share, unique, can_cut):
        """`share`: of all sizes for validation. `unique`: all but the first of equal documents are left out. With `can_cut`, one
        document may be divided if too few are small enough."""
        self.population, self.share, self.unique = population, share, unique
        self.sides = bytearray(population.count)
        self.copies, self.copied = 0, 0  # documents with an equal one before them, and the sum of their sizes
        self.different, self.cut_at = 0, 0  # different documents of validation; where one is cut
        self.find_copies()
        self.kept = population.total - (self.copied if unique else 0)
        self.draw(int(self.kept * share), can_cut)

    def find_copies(self):
        for size, numbers in self.population.groups():
            self.copies += len(numbers) - 1
            self.copied += size * (len(numbers) - 1)
            if self.unique:
                self.mark(numbers[1:], COPY)

    def draw(self, goal, can_cut):
        """Takes the documents with the least keys that fit, up to `goal`."""
        left, skipped = goal, None
        for size, numbers in self.population.groups():
            if left <= (1 - ENOUGH) * goal:
                return
            mine = numbers[:1] if self.unique else numbers
            if size * len(mine) <= left:
                left -= size * len(mine)
                self.different += 1
                self.mark(mine, VALIDATION)
            else:
                skipped = skipped or (size, mine)
        if left > (1 - ENOUGH) * goal and skipped and can_cut and (length := left // len(skipped[1])):
            self.different += 1
            self.cut_at = skipped[0] - length
            self.mark(skipped[1], CUT)

    def mark(self, numbers, side):
        for number in numbers:
            self.sides[number] = side

    def documents(self, side):
        """The number of documents of TRAINING or VALIDATION. A divided one is in both."""
        return self.sides.count(side) + self.sides.count(CUT)

    def side(self, number):
        if number >= len(self.sides):
            raise InputError("the files have more documents than before: they were changed while they were read")
        return self.sides[number]

    def copies_line(self, documents, unit):
        """A line for people, with the words for documents and sizes; empty if there are no copies."""
        if not self.copies:
            return ""
        share = 100 * self.copied / self.population.total
        way = "they are left out" if self.unique else "--unique leaves them out"
        return f"{self.copies} of {self.population.count} {documents} ({share:.1f} % of the {unit}) are exact copies of others: {way}"

    def warning(self, documents):
        """A warning if validation was asked for and is small; otherwise empty."""
        if not self.share or self.different >= FEW:
            return ""
        found = f"{self.different} different {documents}" if self.different else f"none of the {documents}"
        return f"warning: validation has {found}: a loss over fewer than {FEW} says little about others (--validation asks for more)"


def divided(parts, draw):
    """(text, whether it begins a document, TRAINING or VALIDATION) of (text, whether it begins a document), without copies that are
    left out. A document is cut at a line end if there is one."""
    number, position, is_validation = -1, 0, False
    for text, is_start in parts:
        if is_start:
            number, position, is_validation = number + 1, 0, draw.side(number + 1) == VALIDATION
        side = draw.side(number)
        if side == COPY:
            continue
        begin, position = position, position + len(text)
        if side == CUT and not is_validation and begin <= draw.cut_at < position:
            end = text.find("\n", draw.cut_at - begin) + 1
            end = end if 0 < end < len(text) else draw.cut_at - begin
            if end:
                yield text[:end], is_start, TRAINING
            text, is_start, is_validation = text[end:], True, True
        yield text, is_start, VALIDATION if is_validation else TRAINING
