"""Do the kernels compile for CUDA with Clang as well, for host and device, without a warning?

nvcc lets constexpr functions of the host into device code and reports less about it. Nothing is generated.

    python3 compile_cuda.py BUILD_FOLDER

BUILD_FOLDER: a configured build for CUDA, whose compile commands name the sources and their options.
"""

import json
import os
import sys
import tempfile

import clang_check

FOLDERS = ("kernels", "tensor", "optim")  # of src/ that have kernels
OPTIONS = "-x cuda --cuda-gpu-arch=sm_90 -Wno-unknown-cuda-version".split()
MISSING = {"texture_fetch_functions.h": "", "curand_mtgp32_kernel.h": ""}  # in CUDA 13 or its wheels


def options(words):
    toolkit = os.path.dirname(next(w for w in words if w.endswith("/nvcc")))
    header = words[words.index("-include") + 1]
    return [*clang_check.meaning(words), "-include", header, "--cuda-path=" + os.path.dirname(toolkit)]


def main(folder):
    with open(os.path.join(folder, "compile_commands.json")) as file:
        commands = json.load(file)
    own = tuple(f"/kzero_{name}.dir/" for name in FOLDERS)
    commands = [c for c in commands if "nvcc" in c["command"] and any(part in c["command"] for part in own)]
    if len(commands) < len(FOLDERS):
        sys.exit(f"{folder} has {len(commands)} sources with kernels")

    with tempfile.TemporaryDirectory() as headers:
        words = [*clang_check.WORDS, *OPTIONS, *clang_check.write_headers(headers, MISSING)]
        checks = [([*words, *options(clang_check.words_of(c)), c["file"]], c["directory"]) for c in commands]
        return clang_check.run(checks, f"{len(commands)} sources with kernels")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
