"""Do the kernels compile for CUDA with Clang as well, for host and device, without a warning?

nvcc lets constexpr functions of the host into device code and reports less about it. Nothing is generated.

    python3 compile_cuda.py BUILD_FOLDER

BUILD_FOLDER: a configured build for CUDA, whose compile commands name the sources and their options.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

CLANG = "clang++-19"
FOLDERS = ("kernels", "tensor", "optim")  # of src/ that have kernels
OPTIONS = (
    f"{CLANG} -x cuda --cuda-gpu-arch=sm_90 -fsyntax-only -std=c++20 -fopenmp -Wno-unknown-cuda-version "
    "-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-unknown-pragmas -Werror -DFMT_USE_FLOAT128=0"
).split()


def options(command):
    """What decides about the meaning of a source, as Clang writes it."""
    words = shlex.split(command["command"].replace("-isystem=", "-isystem"))
    kept = [w for w in words if w.startswith(("-D", "-I", "-isystem"))]
    return [*kept, "-include", words[words.index("-include") + 1], "--cuda-path=" + os.path.dirname(toolkit(words))]


def toolkit(words):
    return os.path.dirname(next(w for w in words if w.endswith("/nvcc")))


def fill(folder):
    """Headers that Clang 19 asks for: CUDA 13 or its wheels no longer have two, and OpenMP is of Debian's own Clang."""
    found = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True, check=True)
    texts = {
        "texture_fetch_functions.h": "",
        "curand_mtgp32_kernel.h": "",
        "omp.h": f'#include "{found.stdout.strip()}/include/omp.h"\n',
    }
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


def main(folder):
    with open(os.path.join(folder, "compile_commands.json")) as file:
        commands = json.load(file)
    own = tuple(f"/kzero_{name}.dir/" for name in FOLDERS)
    commands = [c for c in commands if "nvcc" in c["command"] and any(part in c["command"] for part in own)]
    if len(commands) < len(FOLDERS):
        sys.exit(f"{folder} has {len(commands)} sources with kernels")

    with tempfile.TemporaryDirectory() as headers, ThreadPoolExecutor(os.cpu_count()) as pool:
        fill(headers)

        def check(command):
            words = [*OPTIONS, *options(command), "-idirafter", headers, command["file"]]
            done = subprocess.run(words, cwd=command["directory"], capture_output=True, text=True)
            return done.stderr if done.returncode else ""

        failures = [text for text in pool.map(check, commands) if text]
    print("\n".join(failures) or f"{len(commands)} sources with kernels pass {CLANG}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
