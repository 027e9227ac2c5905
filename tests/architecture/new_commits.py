"""Files that the last commits changed."""

import os
import re
import subprocess

# Comments of C++ and CMake. A comment that begins with N counts as code, because clang-tidy reads NOLINT.
NO_CODE = "^ *(//+|//+ [^N].*|# [^N].*)$"


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True)


def changed(commits, folder="src"):
    """(changed files of a folder, those whose includes changed) of the last commits. None if the history has fewer commits.

    A file whose comments alone changed does not count.
    """
    base = f"HEAD~{commits}"
    if git("rev-parse", "--verify", "--quiet", base).returncode:
        return None
    root = git("rev-parse", "--show-toplevel").stdout.strip()
    files, headers, path = set(), set(), None
    for line in git("diff", "-U0", "--no-renames", f"-I{NO_CODE}", base, "--", f":/{folder}").stdout.splitlines():
        if line.startswith(("--- a/", "+++ b/")):  # a deleted file has the first line alone
            path = os.path.realpath(os.path.join(root, line[6:]))
            files.add(path)
        elif re.match(r"[+-] *# *include", line):
            headers.add(path)
    return files, headers
