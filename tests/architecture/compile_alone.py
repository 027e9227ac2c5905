"""Does every source compile alone, and every header that no source includes first?

A build that compiles several sources as one (KZERO_UNITY) hides an include that one of them lacks.

    python3 compile_alone.py BUILD_FOLDER

BUILD_FOLDER: configured with KZERO_UNITY=1 and CMAKE_VERIFY_INTERFACE_HEADER_SETS=ON; nothing is built in it.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def first_include(path):
    with open(path) as file:
        found = re.search(r'^#include [<"]([^>"]+)[>"]', file.read(), flags=re.M)
    return found and found[1]


def needed(commands):
    """The commands of all sources, and of the headers that are not a source's first include."""
    sources = [c for c in commands if c["file"].endswith(".cpp")]
    first = {first_include(c["file"]) for c in sources}
    return sources + [c for c in commands if c not in sources and first_include(c["file"]) not in first]


def check(command):
    words = [w for w in shlex.split(command["command"]) if w != "ccache"]
    at = words.index("-o")
    words[at:at + 2] = ["-fsyntax-only"]
    done = subprocess.run(words, cwd=command["directory"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{command['file']} does not compile alone:\n{done.stderr}"


def main(folder):
    with open(os.path.join(folder, "compile_commands.json")) as file:
        commands = needed(json.load(file))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [f for f in pool.map(check, commands) if f]
    print("\n".join(failures) or f"{len(commands)} sources and headers compile alone")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
