#!/usr/bin/env python3
"""Puts defects into the sources that call CUDA, NCCL and cuBLASLt, one at a time, and shows which tests of tests/doubles fail.

  python3 tests/doubles/seeded_defects.py [BUILD] [NUMBER...]
  python3 tests/doubles/seeded_defects.py --check         only whether the sources still have each text once

BUILD is a configured build folder (build/release). The sources are changed where they lie and put back; nothing else may
build meanwhile. Prints a table, and the defects' numbers in defects.py to stderr; the exit code says whether every defect was
found (docs/devices.md has the counts). Run by hand after a change to the stand-ins: each defect compiles a source or two and links.
"""

import pathlib
import re
import subprocess
import sys

from defects import DEFECTS

ROOT = pathlib.Path(__file__).resolve().parents[2]

max_names = 4  # of tests that fail


def run(command, timeout):
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return -1, ""


def found_by(build, program, ranks):
    """Says which tests fail with what is in the tree now."""
    code, text = run(["cmake", "--build", build, "--target", "test_" + program], 1800)
    if code != 0:
        return "does not compile\n" + text
    code, text = run(["ctest", "--test-dir", build, "--output-on-failure", "-R", f"^{program}_np{ranks}$"], 400)
    if code == 0:
        return None
    # Tests of several types have the type's number in their names.
    names = sorted({re.sub(r"/\d", "", name) for name in re.findall(r"\[  FAILED  \] (\w+(?:/\d)?\.\w+)", text)})
    if len(names) > max_names:
        names[max_names:] = [f"{len(names) - max_names} more"]
    endings = sorted(set(re.findall(r"(?:streams|events|communicators) left", text)))
    if "Timeout" in text or code < 0:
        endings = ["a test that hangs"]
    return ", ".join(names or endings or ["the program's end"])


def texts_that_are_not_there_once():
    """The defects that can no longer be put in."""
    counts = ((what, name, (ROOT / name).read_text().count(text)) for what, name, text, *_ in DEFECTS)
    return [f"{what}: its text is {count} times in {name}" for what, name, count in counts if count != 1]


def main():
    if sys.argv[1:] == ["--check"]:
        problems = texts_that_are_not_there_once()
        print(*problems, sep="\n", end="\n" if problems else "")
        return 1 if problems else 0
    build = sys.argv[1] if len(sys.argv) > 1 else "build/release"
    chosen = [int(number) for number in sys.argv[2:]] or range(1, len(DEFECTS) + 1)
    missed = 0
    print("| defect | in | found by |\n|---|---|---|", flush=True)
    for number in chosen:
        what, name, text, replacement, program, ranks = DEFECTS[number - 1]
        path = ROOT / name
        original = path.read_text()
        assert original.count(text) == 1, f"{name} has {original.count(text)} times: {text}"
        try:
            path.write_text(original.replace(text, replacement))
            found = found_by(build, program, ranks)
        finally:
            path.write_text(original)
        missed += found is None or found.startswith("does not compile")
        print(number, end=" ", file=sys.stderr, flush=True)
        print(f"| {what} | `{name}` | {found or '**nothing**'} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
