"""Checks that a program and the shared libraries that it shares kernels with use one CUDA runtime: the library, and no copy.

    python3 check_cuda_runtime.py READELF FILE...

Each runtime has its own last error and its own list of kernels. The copies that NVIDIA's libraries contain do not matter, as
kzero takes no error from them.
"""

import re
import subprocess
import sys


def needed(dynamic):
    """The libraries in the output of `readelf --dynamic`."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)


def problem_of(dynamic, symbols):
    """The problem with a file, by the output of `readelf --dynamic` and of `readelf --wide --symbols`; empty if nothing is."""
    if not any(name.startswith("libcudart.so.") for name in needed(dynamic)):
        return "does not link libcudart.so"
    # Number, value, size, type, binding, visibility, section (UND: of another file), name
    if re.search(r"^\s*\d+: \S+\s+\S+\s+FUNC\s+\S+\s+\S+\s+\d+ cudaLaunchKernel(?:@\S+)?$", symbols, re.M):
        return "contains a copy of the runtime"
    return ""


def main():
    readelf, *files = sys.argv[1:]

    def read(file, *options):
        return subprocess.run([readelf, *options, file], check=True, capture_output=True, text=True).stdout

    failed = False
    for file in files:
        problem = problem_of(read(file, "--dynamic"), read(file, "--wide", "--symbols"))
        failed |= bool(problem)
        print(f"{file}: {problem or 'shares the runtime'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
