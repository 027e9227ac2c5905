"""Reads text for prepare.py, twice: once to count it and to draw validation, and once to encode it to token files."""

import json
from array import array

from .documents import InputError, MissingModule
from .draw import TRAINING, VALIDATION, Draw, Population, divided, hasher, key_of
from .encoding import BATCH, Encoder, allows_cuts, batches, encoded
from .parts import parts
from .report import Problems, Progress
from .shards import Shards
from .text_documents import DocumentEncoder, TextDocuments
from .tokenizer import document_beginning, highest_id


class Corpus:
    """The text of all files that can be read: the parts of their documents, and for which side each is."""

    def __init__(self, files, arguments):
        """Reads all files. Raises InputError if one cannot be read, unless such files are left out."""
        self.arguments = arguments
        self.files, self.count = [], 0  # count: of parts
        population = self.measure(files)
        if not population.count:
            raise InputError(f"{', '.join(map(str, files[:3]))}{' ...' if len(files) > 3 else ''}: there is no text")
        self.draw = Draw(population, arguments.validation, arguments.unique, can_cut=True)

    def measure(self, files):
        progress, problems, population = Progress("reading"), Problems("files"), Population()
        for path in files:
            try:
                count, found = documents_of(self.parts_of(path, True), progress)
            except MissingModule:
                raise
            except InputError as error:
                problems.add(error)
                continue
            self.files.append(path)
            self.count += count
            for key, size in zip(found[::2], found[1::2]):
                population.add(key, size)
        progress.end()
        problems.report(self.arguments.skip_bad)
        return population

    def parts_of(self, path, can_cut):
        return parts(path, self.arguments.text_key, can_cut, self.arguments.encoding)

    def parts(self, can_cut):
        """(text, whether it begins a document, its side) of all files."""
        return divided((part for path in self.files for part in self.parts_of(path, can_cut)), self.draw)

    def summary(self):
        """Lines for people."""
        population = self.draw.population
        yield f"{len(self.files)} files, {population.count} documents, {population.total / 1e6:.2f} million characters"
        if line := self.draw.copies_line("documents", "characters"):
            yield line


def documents_of(parts, progress):
    """(number of parts, array of the key and the characters of each document) of a file."""
    found, content, size, count = array("Q"), None, 0, 0
    for text, is_start in parts:
        if is_start:
            if content:
                found.extend((key_of(content), size))
            content, size = hasher(), 0
        content.update(text.encode())
        size, count = size + len(text), count + 1
        progress.add(len(text))
    if content:
        found.extend((key_of(content), size))
    return count, found


def write_text(corpus, output, tokenizer, rules, around, end):
    """Encodes all text with the tokenizer of the file `rules`. `around`: the ids that it adds before and after a text. `end`: the id
    of the end token. Returns the Shards or TextDocuments of training and of validation, and the bytes of text in both."""
    arguments, total = corpus.arguments, corpus.draw.kept
    names = [f"{arguments.name}_{part}" for part in ("train", "val")]
    if arguments.documents:
        encoder, start = DocumentEncoder, (str(rules),)
        sides = [TextDocuments(output, name, around, end, arguments.sequence) for name in names]
    else:
        width = 2 if highest_id(tokenizer) < 2**16 else 4
        encoder, start = Encoder, (str(rules), document_beginning(end, *around), width)
        sides = [Shards(output, name, width, arguments.shard_tokens) for name in names]
    progress, text_bytes = Progress("encoding", total), 0
    parts = corpus.parts(allows_cuts(json.loads(rules.read_bytes())))
    processes = min(arguments.processes, -(-total // BATCH))
    for side, tokens, size, characters in encoded(batches(parts), processes, encoder, *start):
        sides[side].write(tokens)
        text_bytes += size
        progress.add(characters)
    for side in sides:
        side.finish()
    progress.end()
    return sides, text_bytes


def sides_summary(draw, sides):
    """Lines for people: what training and validation have."""
    tokens = sum(side.count for side in sides)
    for name, number in (("training", TRAINING), ("validation", VALIDATION)):
        side = sides[number]
        share = f"{100 * side.count / tokens:.2f} %"
        yield f"  {name:<10}  {side.count} tokens ({share}), {draw.documents(number)} documents, {side.files} files"
    if divided := sum(getattr(side, "divided", 0) for side in sides):
        yield f"{divided} documents are longer than --sequence, and are divided"
    if warning := draw.warning("documents"):
        yield warning
