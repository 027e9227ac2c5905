"""May the last commits have changed what a build of some folders does?

    python3 affected.py COMMITS FOLDER...

Exit code 0, and a file on standard output, if the last so many commits changed a file that the folders hold or that their sources
reach, or how sources are compiled. Also if the history is shorter. Otherwise 3.
"""

import os
import sys

from includes import reached
from new_commits import changed, git

HOW = ("CMakeLists.txt", "CMakePresets.json", "cmake")  # sources are compiled


def files_of(folder):
    for path, _, names in os.walk(folder):
        yield from (os.path.join(path, name) for name in names)


def needed(root, folders):
    """All files that the folders hold or that their sources reach."""
    roots = [os.path.join(root, name) for name in ("src", "tests")]
    files = {path for folder in folders for path in files_of(os.path.join(root, folder))}
    sources = [path for path in files if path.endswith((".cpp", ".hpp"))]
    return files.union(*(reached(path, *roots) for path in sources))


def main(commits, *folders):
    change = changed(commits, "")
    if not change:
        print(f"the history is shorter than {commits} commits")
        return 0
    root = os.path.realpath(git("rev-parse", "--show-toplevel").stdout.strip())
    files = needed(root, folders)
    for path in sorted(change[0]):
        name = os.path.relpath(path, root)
        if path in files or name.startswith(HOW):
            print(name)
            return 0
    return 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
