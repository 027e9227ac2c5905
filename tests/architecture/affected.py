"""May the last commits have changed what the code in some places does?

    python3 affected.py COMMITS PLACE...

PLACE: a folder or a file. Exit code 0, and a file on standard output, if the last so many commits changed a file in a place or one
that its sources include, or how sources are compiled, apart from comments. Also if the history is shorter. Otherwise 3.
"""

import os
import sys

from includes import reached
from new_commits import changed, git

HOW = ("CMakeLists.txt", "CMakePresets.json", "cmake", "src/CMakeLists.txt", "tests/CMakeLists.txt")  # sources are compiled


def files_of(place):
    if os.path.isfile(place):
        yield place
    for path, _, names in os.walk(place):
        yield from (os.path.join(path, name) for name in names)


def included(root, places):
    """The headers that the sources in the places reach."""
    roots = [os.path.join(root, name) for name in ("src", "tests")]
    files = (path for place in places for path in files_of(os.path.join(root, place)))
    return set().union(*(reached(path, *roots) for path in files if path.endswith((".cpp", ".hpp"))))


def is_in(name, places):
    """Whether a place has or had this file."""
    return any(name == place or name.startswith(place + "/") for place in places)


def main(commits, *places):
    change = changed(commits, "")
    if not change:
        print(f"the history is shorter than {commits} commits")
        return 0
    root = os.path.realpath(git("rev-parse", "--show-toplevel").stdout.strip())
    headers = included(root, places)
    for path in sorted(change[0]):
        name = os.path.relpath(path, root)
        if is_in(name, (*HOW, *places)) or path in headers:
            print(name)
            return 0
    return 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
