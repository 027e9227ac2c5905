"""Does every source compile alone, and every header that no source includes first?

A build that compiles several sources as one (KZERO_UNITY) hides an include that one of them lacks.

    python3 compile_alone.py BUILD_FOLDER [COMMITS]

BUILD_FOLDER: configured for Clang with KZERO_UNITY=1 and CMAKE_VERIFY_INTERFACE_HEADER_SETS=ON. All that is built in it
are precompiled headers of other projects, each for the files that reach these headers by their own includes.

COMMITS: compiles only what the last so many commits may have broken: files that they changed, and files that reach a header
whose includes they changed. Without it, or with a history that is shorter: all.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from includes import header_path, includes, reached
from new_commits import changed

EXPENSIVE = frozenset({"CLI/CLI.hpp", "Kokkos_Core.hpp", "filesystem", "fmt/format.h", "nlohmann/json.hpp"})
MIN_FILES = 8  # that share a precompiled header


def first_include(path):
    return next(iter(includes(path)), None)


def needed(commands):
    """The commands of all sources, and of the headers that are not a source's first include."""
    sources = [c for c in commands if c["file"].endswith(".cpp")]
    first = {first_include(c["file"]) for c in sources}
    return sources + [c for c in commands if c not in sources and first_include(c["file"]) not in first]


def options(command):
    """The words that affect the meaning of a source: all but its name, the object's name and the optimizations."""
    words = shlex.split(command["command"].replace("-isystem ", "-isystem"))
    at = words.index("-o")
    return [w for w in words[:at] + words[at + 4 :] if w != "ccache" and not w.startswith("-O")]


def folders(command):
    return [w[2:] for w in options(command) if w.startswith("-I")]


def expensive(command):
    """The headers of EXPENSIVE that a file reaches. All of Kokkos' come with its core."""
    names = reached(command["file"], *folders(command))
    return frozenset("Kokkos_Core.hpp" if name.startswith("Kokkos_") else name for name in names) & EXPENSIVE


def may_be_broken(command, change):
    files, headers = change
    path, roots = os.path.realpath(command["file"]), folders(command)
    checked = path if path.endswith(".cpp") else header_path(first_include(path), path, roots)
    return checked in files or bool(headers & reached(path, *roots))


def run(words, command):
    done = subprocess.run(words, cwd=command["directory"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{command['file']} does not compile alone:\n{done.stderr}"


def precompile(headers, shared, folder):
    """The options that include a precompiled header of these headers."""
    header = os.path.join(folder, "_".join(re.sub(r"\W", "", name) for name in sorted(headers)) + ".hpp")
    with open(header, "w") as file:
        file.writelines(f"#include <{name}>\n" for name in sorted(headers))
    words = [*shared, "-fpch-instantiate-templates", "-x", "c++-header", header, "-o", header + ".pch"]
    made = run(words, {"directory": folder, "file": header})
    if made:
        sys.exit(made)
    return ["-include-pch", header + ".pch"]


def main(folder, commits=None):
    with open(os.path.join(folder, "compile_commands.json")) as file:
        commands = needed(json.load(file))
    # A precompiled header serves only files that have its options, so all files get those of the source with most libraries.
    shared = max((options(c) for c in commands if c["file"].endswith(".cpp")), key=len)
    change = changed(commits) if commits else None
    if change:
        commands = [c for c in commands if may_be_broken(c, change)]
    sets = [expensive(c) for c in commands]
    common = [headers for headers, files in Counter(sets).items() if headers and files >= MIN_FILES]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = dict(zip(common, pool.map(lambda h: precompile(h, shared, os.path.abspath(folder)), common)))

        def check(command, headers):
            own = [w for w in options(command) if w not in shared and w not in ("-x", "c++")]
            best = max((h for h in common if h <= headers), key=len, default=None)
            return run([*shared, *own, *made.get(best, []), "-w", "-fsyntax-only", command["file"]], command)

        failures = [f for f in pool.map(check, commands, sets) if f]
    print("\n".join(failures) or f"{len(commands)} sources and headers compile alone")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
