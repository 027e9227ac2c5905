"""Does every source compile alone, and every header that no source includes first?

A build that compiles several sources as one (KZERO_UNITY) hides an include that one of them lacks.

    python3 compile_alone.py BUILD_FOLDER

BUILD_FOLDER: configured with KZERO_UNITY=1 and CMAKE_VERIFY_INTERFACE_HEADER_SETS=ON. All that is built in it is a
precompiled <Kokkos_Core.hpp>, for the files that reach a header of Kokkos by their own includes.
"""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def includes(path):
    with open(path) as file:
        return re.findall(r'^#include [<"]([^>"]+)[>"]', file.read(), flags=re.M)


def first_include(path):
    return next(iter(includes(path)), None)


def needed(commands):
    """The commands of all sources, and of the headers that are not a source's first include."""
    sources = [c for c in commands if c["file"].endswith(".cpp")]
    first = {first_include(c["file"]) for c in sources}
    return sources + [c for c in commands if c not in sources and first_include(c["file"]) not in first]


def options(command):
    """What decides about the meaning of a source: all but its name, the object's and the optimizations."""
    words = shlex.split(command["command"].replace("-isystem ", "-isystem"))
    at = words.index("-o")
    return [w for w in words[:at] + words[at + 4 :] if w != "ccache" and not w.startswith("-O")]


def folders(command):
    return [w[2:] for w in options(command) if w.startswith("-I")]


@functools.cache
def sees_kokkos(path, *roots):
    for name in includes(path):
        if name.startswith("Kokkos_"):
            return True
        found = (os.path.join(root, name) for root in (os.path.dirname(path), *roots))
        header = next((f for f in found if os.path.isfile(f)), None)
        if header and sees_kokkos(header, *roots):
            return True
    return False


def run(words, command):
    done = subprocess.run(words, cwd=command["directory"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{command['file']} does not compile alone:\n{done.stderr}"


def precompiled(folder, commands):
    """The options that all sources share, and those that include a precompiled header made with them."""
    sources = [options(c) for c in commands if c["file"].endswith(".cpp")]
    shared = [w for w in sources[0] if all(w in s for s in sources)]
    header = os.path.join(folder, "kokkos.hpp")
    with open(header, "w") as file:
        file.write("#include <Kokkos_Core.hpp>\n")
    made = run([*shared, "-x", "c++-header", header, "-o", header + ".gch"], {"directory": folder, "file": header})
    if made:
        sys.exit(made)
    return shared, ["-include", header, "-Winvalid-pch"]


def main(folder):
    with open(os.path.join(folder, "compile_commands.json")) as file:
        commands = needed(json.load(file))
    shared, include = precompiled(os.path.abspath(folder), commands)

    def check(command):
        own = [w for w in options(command) if w not in shared and w not in ("-x", "c++")]
        kokkos = include if sees_kokkos(command["file"], *folders(command)) else []
        return run([*shared, *own, *kokkos, "-fsyntax-only", command["file"]], command)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [f for f in pool.map(check, commands) if f]
    print("\n".join(failures) or f"{len(commands)} sources and headers compile alone")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
