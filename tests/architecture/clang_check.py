"""Sources for devices, read by a Clang that generates nothing: what compile_cuda.py and compile_hip.py share."""

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

CLANG = "clang++-19"  # Clang 14, Debian 12's default, crashes on some of the sources
WORDS = (
    f"{CLANG} -fsyntax-only -std=c++20 -fopenmp -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-unknown-pragmas "
    "-Werror -DFMT_USE_FLOAT128=0"
).split()


def words_of(command):
    return shlex.split(command["command"].replace("-isystem=", "-isystem").replace("-isystem ", "-isystem"))


def meaning(words, *more):
    """The options that decide about the meaning of a source, as Clang writes them, and those that begin with one of `more`."""
    return [w for w in words if w.startswith(("-D", "-I", "-isystem", *more))]


def write_headers(folder, texts):
    """Writes headers, and OpenMP's, which Debian has for its default Clang. Returns the options that let others precede them."""
    found = subprocess.run(["clang", "-print-resource-dir"], capture_output=True, text=True, check=True)
    for name, text in {**texts, "omp.h": f'#include "{found.stdout.strip()}/include/omp.h"\n'}.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    return ["-idirafter", folder]


def run(checks, passed):
    """Runs commands, each with its folder. Returns whether one failed; prints why, or what passed."""

    def failure(check):
        words, folder = check
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        return done.stderr if done.returncode else ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [text for text in pool.map(failure, checks) if text]
    print("\n".join(failures) or f"{passed} pass {CLANG}", file=sys.stderr if failures else sys.stdout)
    return bool(failures)
