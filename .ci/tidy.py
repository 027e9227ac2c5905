"""Runs clang-tidy on src/ as two sources: those that include Kokkos' headers, and the others.

    python3 .ci/tidy.py BUILD_FOLDER [COMMITS]

clang-tidy's checks also visit the declarations of every header that a source includes. They take most of its time, so as few
sources as possible read them. BUILD_FOLDER: configured with KZERO_UNITY > 1; what was found is printed.

COMMITS: checks only files that the last so many commits changed, a header in one of the sources that reach it. Without it, or
with a history that is shorter: all.
"""

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.append(os.path.join(os.path.dirname(__file__), "../tests/architecture"))
from includes import reached
from new_commits import changed

MEANING = ("-D", "-I", "-f", "-isystem", "-m", "-std=")  # options without which a source would have another meaning


def united(path, roots):
    """The sources that a source for several of them includes; a source of its own is one."""
    with open(path) as file:
        names = [line.split('"')[1] for line in file if "NOLINT(bugprone-suspicious-include)" in line]
    places = [os.path.realpath(os.path.join(root, name)) for name in names for root in roots]
    return [p for p in places if os.path.isfile(p)] or [os.path.realpath(path)]


def with_changes(sources, files, roots):
    """The sources that are among the files, and one for each header among them that these do not reach."""
    chosen = [s for s in sources if s in files]
    seen = set().union(*(reached(s, *roots) for s in chosen))
    for source in sources:
        found = reached(source, *roots) & files - seen
        if found:
            chosen.append(source)
            seen |= reached(source, *roots)
    return chosen


def check(name, sources, options, folder):
    path = os.path.join(folder, f"tidy_{name}.cpp")
    with open(path, "w") as file:
        file.writelines(f'#include "{source}"  // NOLINT(bugprone-suspicious-include)\n' for source in sources)
    return subprocess.run(["clang-tidy-14", "-quiet", path, "--", *options], capture_output=True, text=True)


def main(folder, commits=None):
    folder = os.path.abspath(folder)
    with open(os.path.join(folder, "compile_commands.json")) as file:
        commands = [c for c in json.load(file) if c["file"].startswith(os.path.join(folder, "src/"))]
    words = [w for c in commands for w in shlex.split(c["command"].replace("-isystem ", "-isystem"))]
    options = list(dict.fromkeys(w for w in words if w.startswith(MEANING)))
    roots = [w[2:] for w in options if w.startswith("-I")]
    change = changed(commits) if commits else None
    parts = {}
    for name in ("device", "host"):
        sources = [s for c in commands if f"_{name}_" in c["file"] for s in united(c["file"], roots)]
        parts[name] = with_changes(sources, change[0], roots) if change else sources
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda part: check(*part, options, folder), parts.items()))
    for run in done:
        print(run.stdout, end="")
        if run.returncode and not run.stdout:
            print(run.stderr, end="")
    print(" and ".join(f"{len(sources)} {name} sources" for name, sources in parts.items()), "checked")
    return any(run.returncode for run in done)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
