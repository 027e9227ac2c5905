"""Runs clang-tidy on all of src/ as two sources: those that include Kokkos' headers, and the others.

    python3 .ci/tidy.py BUILD_FOLDER

clang-tidy's checks also visit the declarations of every header that a source includes. They take most of its time, so as few
sources as possible read them. BUILD_FOLDER: configured with KZERO_UNITY > 1; what was found is printed.
"""

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

MEANING = ("-D", "-I", "-f", "-isystem", "-m", "-std=")  # options without which a source would have another meaning


def check(name, sources, options, folder):
    path = os.path.join(folder, f"tidy_{name}.cpp")
    with open(path, "w") as file:
        file.writelines(f'#include "{source}"  // NOLINT(bugprone-suspicious-include)\n' for source in sources)
    return subprocess.run(["clang-tidy-14", "-quiet", path, "--", *options], capture_output=True, text=True)


def main(folder):
    folder = os.path.abspath(folder)
    with open(os.path.join(folder, "compile_commands.json")) as file:
        commands = [c for c in json.load(file) if c["file"].startswith(os.path.join(folder, "src/"))]
    words = [w for c in commands for w in shlex.split(c["command"].replace("-isystem ", "-isystem"))]
    options = list(dict.fromkeys(w for w in words if w.startswith(MEANING)))
    sources = {name: [c["file"] for c in commands if f"_{name}_" in c["file"]] for name in ("device", "host")}
    with ThreadPoolExecutor() as pool:
        done = list(pool.map(lambda part: check(*part, options, folder), sources.items()))
    for run in done:
        print(run.stdout, end="")
        if run.returncode and not run.stdout:
            print(run.stderr, end="")
    return any(run.returncode for run in done)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
