"""Checks that retired words stay out of sources, tests and documentation; prints every breach and exits with 1 if there is one.

    python3 check_words.py ROOT RETIRED_WORDS

RETIRED_WORDS: a line "pattern | replacement | files" for each. The pattern is a regular expression, in which case counts only if
it has a capital. The files, as patterns relative to ROOT, may still have it.
"""

import re
import sys
from fnmatch import fnmatch
from pathlib import Path

CHECKED = ("src", "tests", "docs", "input", "README.md")
KINDS = {".cpp", ".hpp", ".py", ".sh", ".txt", ".md", ".toml", ".cmake"}
# Recorded data, and this check's own list and test, which have to spell the words.
LEFT_OUT = ("tests/data/*", "tests/architecture/retired_words.txt", "tests/architecture/check_words_test.py")


def read_words(path):
    """[(pattern, replacement, files)], and the faults of the list itself."""
    words, problems = [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        # A pattern may contain "|" without blanks around it.
        fields = [field.strip() for field in line.split(" | ")]
        if len(fields) not in (2, 3) or not all(fields):
            problems.append(f"{path.name}:{number}: not \"pattern | replacement | files\"")
            continue
        flags = 0 if re.search(r"(?<!\\)[A-Z]", fields[0]) else re.IGNORECASE
        words.append((re.compile(fields[0], flags), fields[1], fields[2].split() if len(fields) == 3 else []))
    return words, problems


def checked_files(root):
    for name in CHECKED:
        start = root / name
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            relative = path.relative_to(root).as_posix()
            if path.suffix in KINDS and path.is_file() and not any(fnmatch(relative, left_out) for left_out in LEFT_OUT):
                yield relative, path


def check_words(root, list_path):
    words, problems = read_words(list_path)
    used, files = set(), 0
    for name, path in checked_files(root):
        files += 1
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for pattern, replacement, allowed in words:
                match = pattern.search(line)
                if not match:
                    continue
                by = [glob for glob in allowed if fnmatch(name, glob)]
                used |= {(pattern.pattern, glob) for glob in by}
                if not by:
                    problems.append(f"{name}:{number}: \"{match.group()}\" is retired; write {replacement}")
    if files == 0:
        problems.append(f"{root}: no files to check")
    for pattern, _, allowed in words:
        problems += [
            f"{list_path.name}: {glob} no longer needs {pattern.pattern}"
            for glob in allowed
            if (pattern.pattern, glob) not in used
        ]
    return problems


if __name__ == "__main__":
    breaches = check_words(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(breaches) or "no retired word")
    sys.exit(1 if breaches else 0)
