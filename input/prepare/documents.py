"""Opens and decodes the files of prepare.py, compressed or not, with bounded memory; the errors that name a file."""

import codecs
import contextlib
import gzip
import io
import json
import sys
import zlib
from pathlib import Path

BLOCK = 1 << 20  # bytes that are read at a time
TEXT = (".txt", ".text", ".md")
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
