"""Reads objects for prepare.py: JSON lines, JSON arrays, CSV with a header, and parquet, compressed or not, with bounded memory."""

import csv
import io
import json

from .documents import EncodingError, InputError, MissingModule, decoded, kind_of, open_binary, reading, shown

JSON, TABLES, PARQUET = (".jsonl", ".json"), (".csv", ".tsv"), ".parquet"
KINDS = (*JSON, *TABLES, PARQUET)
LONGEST = 64 << 20  # most characters of an element of an array, and of a field of a table
MARK = "\ufeff"  # may begin a text in Unicode


def objects(path, encoding="utf-8"):
    """(where, the object, or the InputError of a bad one) of a file. `encoding`: of tables. Raises InputError, with the path, if the
    file cannot be read on."""
    kind = kind_of(path)
    if kind not in KINDS:
        raise InputError(f"{path}: objects are read from files that end in {', '.join(KINDS)}, also with .gz or .zst")
    with reading(path):
        if kind in TABLES:
            yield from table_rows(path, "\t" if kind == ".tsv" else ",", encoding)
        elif kind == PARQUET:
            rows = (row for batch in open_parquet(path).iter_batches(batch_size=256) for row in batch.to_pylist())
            yield from ((f"{path}: row {number}", row) for number, row in enumerate(rows, 1))
        elif first_character(path) == "[":
            yield from Array(path).elements()
        else:
            yield from lines(path)


def first_character(path):
    """The first character that is not white space; empty if there is none in the first block."""
    text = next(decoded(path, "latin-1"), "")  # any bytes are characters in it
    return text.removeprefix(MARK.encode().decode("latin-1")).lstrip()[:1]


def lines(path):
    """The object of each line that is not blank."""
    with open_binary(path) as file:
        is_first = True
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            if is_first and line.strip() == b"{":
                raise InputError(
                    f"{path}: its first object has several lines, but a file has an object a line, or one array of objects "
                    "(jq -c '.KEY[]' FILE takes those of a list under a key)"
                )
            is_first = False
            try:
                yield f"{path}:{number}", read_object(line)
            except InputError as error:
                yield f"{path}:{number}", error


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
    return checked_object(value)


def checked_object(value):
    if not isinstance(value, dict):
        raise InputError(f"is not a JSON object but {shown(value)}")
    return value


class Array:
    """One JSON array. An element at a time is in memory, and a block."""

    def __init__(self, path):
        self.path, self.blocks = path, decoded(path, "utf-8")
        self.text, self.at, self.line = next(self.blocks).removeprefix(MARK), 0, 1  # line: in which the text begins
        self.decoder = json.JSONDecoder()

    def elements(self):
        """(where, the object, or the InputError of another element)."""
        number = 0
        self.expect("[")
        while self.next_character() != "]" or number:
            where = f"{self.path}[{number}]"
            value = self.element(where)
            try:
                yield where, checked_object(value)
            except InputError as error:
                yield where, error
            number += 1
            if self.next_character() == "]":
                break
            self.expect(",", "]")
        self.expect("]")
        if self.next_character():
            raise InputError(f"{self.path}: line {self.line_of(self.at)}: more follows after the array")

    def read(self, least):
        """Reads on until `least` characters are there. False: the file has no more."""
        self.line, self.text, self.at = self.line_of(self.at), self.text[self.at :], 0
        waiting, length = [self.text], len(self.text)
        while length < least and (block := next(self.blocks, "")):
            waiting.append(block)
            length += len(block)
        self.text = "".join(waiting)
        return len(waiting) > 1

    def line_of(self, at):
        return self.line + self.text.count("\n", 0, at)

    def next_character(self):
        """The next character that is not white space; empty at the end of the file."""
        while True:
            rest = len(self.text) - self.at
            self.at += next((i for i in range(rest) if self.text[self.at + i] not in " \t\r\n"), rest)
            if self.at < len(self.text) or not self.read(1):
                return self.text[self.at : self.at + 1]

    def expect(self, *characters):
        found = self.next_character()
        if found not in characters or not found:
            what = f"has {json.dumps(found)}" if found else "ends"
            raise InputError(f"{self.path}: line {self.line_of(self.at)}: {what} where {' or '.join(characters)} is needed")
        self.at += found == characters[0]

    def element(self, where):
        self.next_character()
        while True:
            try:
                value, self.at = self.decoder.raw_decode(self.text, self.at)
                return value
            except json.JSONDecodeError as error:
                # An element that is not complete yet ends at the end of the text, or within a string that begins anywhere.
                may_go_on = error.msg.startswith("Unterminated string") or error.pos + 10 > len(self.text)
                length = len(self.text) - self.at
                if not may_go_on or length > LONGEST or not self.read(2 * length + 1):
                    place = f"line {self.line_of(max(error.pos, 0))}"
                    too_long = f" or has more than {LONGEST >> 20} Mi characters" if length > LONGEST else ""
                    raise InputError(f"{where}: is not JSON{too_long}: {error.msg} ({place})") from error
            except ValueError as error:
                raise InputError(f"{where}: is not JSON: {error}") from error
            except RecursionError as error:
                raise InputError(f"{where}: nests too deep") from error


def table_rows(path, delimiter, encoding):
    """Each row of a table as an object of texts. The first row has the names of the columns."""
    csv.field_size_limit(LONGEST)
    encoding = "utf-8-sig" if encoding == "utf-8" else encoding
    with io.TextIOWrapper(open_binary(path), encoding=encoding, newline="") as file:
        rows = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            names = next(rows, [])
            if len(set(names)) < len(names):
                raise InputError(f"{path}:1: two columns have one name: {', '.join(names)[:200]}")
            for row in rows:
                where = f"{path}:{rows.line_num}"
                if row and len(row) != len(names):
                    yield where, InputError(f"has {len(row)} fields, but the table has {len(names)} columns")
                elif row:
                    yield where, dict(zip(names, row))
        except csv.Error as error:
            raise InputError(f"{path}:{rows.line_num}: {error}") from error
        except UnicodeError as error:
            raise EncodingError(f"{path}: is not {encoding.removesuffix('-sig').upper()}: {error}") from error


def open_parquet(path):
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise MissingModule(path, "pyarrow") from error
    return pyarrow.parquet.ParquetFile(path)
