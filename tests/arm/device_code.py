"""Compiles the code for devices with a host compiler for AArch64, as on Grace-Hopper. Nothing is linked or optimized.

    python3 tests/arm/device_code.py BUILD_FOLDER

BUILD_FOLDER: configured for CUDA on x86-64, after `bash cmake/debian.sh cuda arm`. CUDA's headers are the same for both
processors; those of the system and of MPI are AArch64's.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SYSROOT = os.path.join(ROOT, ".deps/arm64")
HOST = f"-ccbin=aarch64-linux-gnu-g++ -Xcompiler=--sysroot={SYSROOT},-O0 -gencode=arch=compute_90,code=compute_90".split()
X86 = re.compile(r",?(-march=native|-mprefer-vector-width=\d+|-O\d)")


def words_for_arm(command):
    """nvcc's words, without x86-64's instructions and with the folders of headers in the sysroot."""
    for word in shlex.split(command)[:-2]:  # without -o and its file
        if word.startswith("--generate-code") or word.endswith("ccache"):
            continue
        word = word.replace("=/usr/include/x86_64-linux-gnu", f"={SYSROOT}/usr/include/aarch64-linux-gnu")
        word = X86.sub("", word)
        if word not in ("-Xcompiler=", ""):
            yield word


def compile_source(command, folder):
    output = os.path.join(folder, os.path.basename(command["file"]) + ".o")
    words = [*words_for_arm(command["command"]), *HOST, "-o", output]
    done = subprocess.run(words, cwd=command["directory"], capture_output=True, text=True)
    if done.returncode:
        return f"{shlex.join(words)}\n{done.stdout}{done.stderr}"
    with open(output, "rb") as file:
        is_arm = file.read(20)[18:20] == b"\xb7\x00"  # e_machine: EM_AARCH64
    return "" if is_arm else f"{output} is no object for AArch64"


def main(folder):
    with open(os.path.join(folder, "compile_commands.json")) as file:
        commands = [c for c in json.load(file) if "/nvcc" in c["command"] and "/tests/" not in c["file"]]
    if not commands:
        sys.exit(f"{folder} has no sources that nvcc compiles")
    with tempfile.TemporaryDirectory() as objects, ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [f for f in pool.map(lambda c: compile_source(c, objects), commands) if f]
    print("\n".join(failures) or f"{len(commands)} sources with code for devices compile for AArch64")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
