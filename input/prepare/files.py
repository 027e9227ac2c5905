"""Finds the files that prepare.py reads, and counts those that it skips. Makes names safe to print on a terminal."""

import collections
import os
import stat
from pathlib import Path

from .documents import COMPRESSED, TEXT, InputError, kind_of

# The kinds of files that are used from folders, in upper or lower case: text, and program sources.
PROSE = (*TEXT, ".adoc", ".org", ".rst", ".tex")
SOURCES = (
    ".bash",
    ".c",
    ".cc",
    ".cmake",
    ".cpp",
    ".cu",
    ".cuh",
    ".cxx",
    ".f",
    ".f03",
    ".f08",
    ".f90",
    ".f95",
    ".for",
    ".go",
    ".h",
    ".hh",
    ".hpp",
    ".hs",
    ".hxx",
    ".java",
    ".jl",
    ".js",
    ".kt",
    ".lua",
    ".m",
    ".ml",
    ".php",
    ".pl",
    ".pm",
    ".py",
    ".pyi",
    ".r",
    ".rb",
    ".rs",
    ".scala",
    ".sh",
    ".sql",
    ".ts",
)
DEFAULT_SUFFIXES = frozenset((*PROSE, *SOURCES, ".jsonl", ".parquet"))
ALL, NONE = "all", "none"  # for --suffix: every file, and files without a suffix
MAX_KINDS = 8  # of skipped files that are counted separately

SPECIAL = ((stat.S_ISFIFO, "FIFO"), (stat.S_ISSOCK, "socket"), (stat.S_ISBLK, "device"), (stat.S_ISCHR, "device"))


def printable(text):
    """The text with control characters, line ends and bytes that are not UTF-8 written as escapes."""

    def spelled(c):
        code = ord(c)
        if 0xDC80 <= code <= 0xDCFF:  # a byte of a name that is not UTF-8
            code -= 0xDC00
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return "".join(c if c.isprintable() else {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(c) or spelled(c) for c in text)


def suffixes(text):
    """The set of a list such as ".py,.h": suffixes in lower case, with their dot, ALL and NONE."""
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    return frozenset(word if word in (ALL, NONE) or word.startswith(".") else "." + word for word in words)


def suffix_of(path):
    """The suffix with that of the compression: ".txt.gz"."""
    end = path.suffix.lower() if path.suffix.lower() in COMPRESSED else ""
    return kind_of(path) + end


def is_wanted(path, wanted):
    kind = kind_of(path)
    if kind == ".parquet" and suffix_of(path) != kind:
        return False  # its format is compressed already, and is read at any place
    return ALL in wanted or (kind or NONE) in wanted


def special_kind(path):
    """The kind of a special file; empty for regular files and folders."""
    mode = path.stat().st_mode
    return next((name for is_kind, name in SPECIAL if is_kind(mode)), "")


def find_files(paths, wanted):
    """(files, number of skipped ones by kind). A folder is replaced by the files in it with a suffix in `wanted`, at any depth, sorted
    by name. Raises InputError."""
    files, without, skipped = [], [], collections.Counter()
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(files_of_folder(path, wanted, skipped))
            if not inside:
                without.append(str(path))
            files += inside
        elif not path.exists():
            raise InputError(f"{path}: there is no such file or folder")
        elif kind := special_kind(path):
            raise InputError(f"{path}: is a {kind}, but text is read from regular files, more than once")
        else:
            files.append(path)
    if without and not files:
        raise InputError(
            f"{', '.join(without)}: has no file of text{skipped_text(skipped, ': skipped ')}; --suffix chooses other suffixes"
        )
    return files, skipped


def files_of_folder(folder, wanted, skipped):
    def fail(error):
        raise InputError(f"{error.filename}: {error.strerror}") from error

    for here, folders, names in os.walk(folder, onerror=fail):
        for name in list(folders):
            kind = "hidden folder" if name.startswith(".") else "link to a folder" if (Path(here) / name).is_symlink() else ""
            if kind:
                folders.remove(name)
                skipped[kind] += 1
        for name in names:
            path = Path(here) / name
            kind = "hidden" if name.startswith(".") else "broken link" if not path.exists() else special_kind(path)
            if kind:
                skipped[kind] += 1
            elif is_wanted(path, wanted):
                yield path
            else:
                skipped[suffix_of(path) or "without suffix"] += 1


def skipped_text(skipped, begin):
    """`begin` and the numbers of skipped files, as in "10 .png, 2 hidden folder"; empty if there are none."""
    kinds = sorted(skipped.items(), key=lambda item: (-item[1], item[0]))
    parts = [f"{count} {kind}" for kind, count in kinds[:MAX_KINDS]]
    if others := sum(count for _, count in kinds[MAX_KINDS:]):
        parts.append(f"{others} of {len(kinds) - MAX_KINDS} other kinds")
    return begin + ", ".join(parts) if parts else ""
