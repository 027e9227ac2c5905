"""Reads documents for prepare.py: text files, JSON lines and parquet, compressed or not, with bounded memory.

A document comes in one or several parts, (text, whether it begins a document). A text file is one document; it is split only where
that changes no token. In the other kinds of files, each line or row is one document.
"""

import codecs
import contextlib
import gzip
import io
import json
import sys
import zlib
from pathlib import Path

BLOCK = 1 << 20  # characters after which a text is split, at the next place that allows it
LONGEST = 64 << 20  # most characters without such a place
TEXT = (".txt", ".text", ".md")
LINES = (".jsonl", ".json")
COMPRESSED = (".gz", ".zst")


class InputError(Exception):
    """Reports problems of files: the arguments are lines, and each line names a file."""


class EncodingError(InputError):
    """A text file does not have the encoding in which it is read."""


class MissingModule(InputError):
    """This Python lacks the module for a kind of file."""

    def __init__(self, path, name):
        super().__init__(f"{path}: reading it needs the module {name}: {sys.executable} -m pip install {name}")


def kind_of(path):
    """The file's suffix without that of its compression, in lower case."""
    return (Path(path.stem).suffix if path.suffix.lower() in COMPRESSED else path.suffix).lower()


def open_binary(path):
    compression = path.suffix.lower()
    if compression == ".gz":
        return gzip.open(path, "rb")
    if compression == ".zst":
        try:
            import zstandard
        except ImportError as error:
            raise MissingModule(path, "zstandard") from error
        return io.BufferedReader(ZstandardFile(open(path, "rb"), zstandard.ZstdDecompressor()), BLOCK)
    return open(path, "rb")


class ZstandardFile(io.RawIOBase):
    """Reads frames one after the other. A file that ends within a frame is an error; the module itself does not report it."""

    def __init__(self, file, decompressor):
        super().__init__()
        self.file, self.decompressor = file, decompressor
        self.frame, self.ready, self.rest = None, b"", b""

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self.ready:
            data = self.rest or self.file.read(BLOCK // 8)
            if not data:
                if self.frame is not None:
                    raise EOFError("the file ends within a frame: it is truncated")
                return 0
            self.frame = self.frame or self.decompressor.decompressobj()
            self.ready, self.rest = memoryview(self.frame.decompress(data)), b""
            if self.frame.eof:
                self.rest, self.frame = self.frame.unused_data, None
        part = self.ready[: len(buffer)]
        buffer[: len(part)], self.ready = part, self.ready[len(part) :]
        return len(part)

    def close(self):
        self.file.close()
        super().close()


def parts(path, key, can_cut, encoding="utf-8"):
    """The parts of a file's documents that are not empty. `key` is the key or column of the text, `encoding` the encoding of text
    files. Raises InputError."""
    readers = {".parquet": parquet_rows, **dict.fromkeys(LINES, json_lines)}
    reader = readers.get(kind_of(path))
    with reading(path):
        if reader is None:
            yield from text_parts(path, can_cut, encoding)
        else:
            yield from ((text, True) for text in reader(path, key) if text)


@contextlib.contextmanager
def reading(path):
    """Raises InputError, with the path, for the errors of reading and unpacking a file."""
    try:
        yield
    except (OSError, EOFError, zlib.error, UnicodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    except Exception as error:  # zstandard's and pyarrow's errors have no other common base, and the modules may be missing
        if isinstance(error, InputError) or type(error).__module__.split(".")[0] not in ("zstandard", "pyarrow"):
            raise
        raise InputError(f"{path}: {error}") from error


def decoded(path, encoding):
    """The file's text in blocks."""
    decoder = codecs.getincrementaldecoder(encoding)()
    offset = 0
    with open_binary(path) as file:
        while True:
            block = file.read(BLOCK)
            kept = len(decoder.getstate()[0])
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                at = offset - kept + error.start
                raise EncodingError(
                    f"{path}: is not {encoding.upper()}: byte {at} is 0x{error.object[error.start]:02x}"
                ) from error
            except UnicodeError as error:
                raise EncodingError(f"{path}: is not {encoding.upper()}: {error}") from error
            offset += len(block)
            if encoding != "utf-8" and (problem := surrogate_problem(text)):  # UTF-7 and escapes can spell one
                raise EncodingError(f"{path}: {problem}")
            if not block:
                if text:
                    yield text
                return
            yield text


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


def json_lines(path, key):
    for number, value in numbered_objects(path):
        text = value.get(key)
        if not isinstance(text, str):
            found = f"{key} is {shown(text)}" if key in value else f"has no {key}, only {', '.join(value)[:200] or 'nothing'}"
            raise InputError(f"{path}:{number}: {found}; its text is needed (--text-key says where it is)")
        if not text.isascii():
            check_unicode(text, f"{path}:{number}")
        yield text


def shown(value):
    """The beginning of a JSON value, for messages."""
    try:
        return json.dumps(value)[:60]
    except RecursionError:
        return "nested too deep"


def surrogate_problem(text):
    """The problem with a text that UTF-8 cannot represent; empty for all other texts."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"its text has half a surrogate pair, \\u{ord(text[error.start]):04x}, which UTF-8 cannot represent"
    return ""


def check_unicode(text, where):
    if problem := surrogate_problem(text):
        raise InputError(f"{where}: {problem}")


def numbered_lines(path):
    """The line number and the bytes of each line that is not blank."""
    with open_binary(path) as file:
        yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())


def read_object(line):
    """The JSON object of a line. The InputError that it raises does not name the line."""
    try:
        value = json.loads(line)
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 at byte {error.start} of the line") from error
    except ValueError as error:
        raise InputError(f"is not JSON: {error}") from error
    except RecursionError as error:
        raise InputError("nests too deep") from error
    if not isinstance(value, dict):
        raise InputError(f"is not a JSON object but {shown(value)}")
    return value


def numbered_objects(path):
    """The line number and the object of each line that is not blank."""
    for number, line in numbered_lines(path):
        try:
            value = read_object(line)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        yield number, value


def parquet_rows(path, key):
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingModule(path, "pyarrow") from error
    table = pyarrow.parquet.ParquetFile(path)
    if key not in table.schema_arrow.names:
        raise InputError(f"{path}: has no column {key}, only {', '.join(table.schema_arrow.names)} (--text-key says which)")
    row = 0
    for batch in table.iter_batches(batch_size=256, columns=[key]):
        for text in batch.column(0).to_pylist():
            row += 1
            if not isinstance(text, str):
                raise InputError(f"{path}: row {row} of column {key} is not text")
            yield text
