"""Compiles the tests' code for devices, and no more: nvcc's own compiler reads each source, the host's does not.

    python3 .ci/device_code.py BUILD_FOLDER [COMMITS]

nvcc refuses what g++ takes, such as a call of a host function in a kernel. It says so in the first quarter of its time; the rest
makes programs that nothing here can run. BUILD_FOLDER: configured for CUDA.

COMMITS: compiles only programs in whose folder of tests/ the last so many commits changed a source. Without it, or with a
history that is shorter: all.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.append(os.path.join(os.path.dirname(__file__), "../tests/architecture"))
from new_commits import changed


def check(command, folder):
    words = [w for w in shlex.split(command["command"]) if w != "ccache" and not w.endswith("/ccache")]
    architecture = re.search(r"arch=(compute_\w+)", command["command"])[1]
    options = [w for w in words[: words.index("-c")] if not w.startswith("--generate-code")]
    output = os.path.join(folder, os.path.basename(command["file"]) + ".ptx")
    words = [*options, f"-arch={architecture}", "-ptx", command["file"], "-o", output]
    return subprocess.run(words, cwd=command["directory"], capture_output=True, text=True)


def main(folder, commits=None):
    with open(os.path.join(folder, "compile_commands.json")) as file:
        commands = [c for c in json.load(file) if "/tests/" in c["file"] and "nvcc" in c["command"]]
    if not commands:
        sys.exit(f"{folder} has no tests that nvcc compiles")
    change = changed(commits, "tests") if commits else None
    if change:
        folders = {os.path.relpath(os.path.dirname(f)) for f in change[0] if f.endswith((".cpp", ".hpp"))}
        commands = [c for c in commands if any(f"/{f}/" in c["file"] for f in folders)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(lambda c: check(c, os.path.abspath(folder)), commands))
    for run in done:
        if run.returncode:
            print(run.stdout, run.stderr, sep="", end="")
    print(f"{len(done)} sources compiled for devices")
    return any(run.returncode for run in done)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
