"""Reads documents for prepare.py in parts, with bounded memory.

A document comes in one or several parts, (text, whether it begins a document). A text file is one document; it is split only where
that changes no token. In the other kinds of files, each object or row is one document.
"""

from .documents import InputError, check_unicode, decoded, kind_of, reading, shown
from .objects import KINDS, PARQUET, objects, open_parquet

BLOCK = 1 << 20  # characters after which a text is split, at the next place that allows it
LONGEST = 64 << 20  # most characters without such a place


def parts(path, key, can_cut, encoding="utf-8"):
    """The parts of a file's documents that are not empty. `key` is the key or column of the text, `encoding` the encoding of text
    files. Raises InputError."""
    kind = kind_of(path)
    with reading(path):
        if kind == PARQUET:
            yield from ((text, True) for text in parquet_column(path, key) if text)
        elif kind in KINDS:
            yield from ((text, True) for text in texts_of_objects(path, key, encoding) if text)
        else:
            yield from text_parts(path, can_cut, encoding)


def text_parts(path, can_cut, encoding):
    rest, is_start = "", True
    for text in decoded(path, encoding):
        rest += text
        end = safe_cut(rest) if can_cut and len(rest) >= BLOCK else 0
        if end:
            yield rest[:end], is_start
            rest, is_start = rest[end:], False
        if len(rest) > LONGEST:
            raise InputError(
                f"{path}: {LONGEST >> 20} Mi characters follow one another without a line end after a letter or digit"
                if can_cut
                else f"{path}: has more than {LONGEST >> 20} Mi characters, which this tokenizer's rules "
                "do not allow to cut: give it as JSON lines"
            )
    if rest:
        yield rest, is_start


def safe_cut(text):
    """The last place that no token of byte-level BPE crosses: before a line end that follows a letter or digit. 0: none."""
    at = text.rfind("\n")
    while at > 0 and not text[at - 1].isalnum():
        at = text.rfind("\n", 0, at)
    return max(at, 0)


def texts_of_objects(path, key, encoding):
    for where, value in objects(path, encoding):
        if isinstance(value, InputError):
            raise InputError(f"{where}: {value}")
        text = value.get(key)
        if not isinstance(text, str):
            found = f"{key} is {shown(text)}" if key in value else f"has no {key}, only {', '.join(value)[:200] or 'nothing'}"
            raise InputError(f"{where}: {found}; its text is needed (--text-key says where it is; --chat reads conversations)")
        if not text.isascii():
            check_unicode(text, where)
        yield text


def parquet_column(path, key):
    table = open_parquet(path)
    if key not in table.schema_arrow.names:
        raise InputError(f"{path}: has no column {key}, only {', '.join(table.schema_arrow.names)} (--text-key says which)")
    row = 0
    for batch in table.iter_batches(batch_size=256, columns=[key]):
        for text in batch.column(0).to_pylist():
            row += 1
            if not isinstance(text, str):
                raise InputError(f"{path}: row {row} of column {key} is not text")
            yield text
