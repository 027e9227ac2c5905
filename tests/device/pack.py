#!/usr/bin/env python3
"""Packs programs and the libraries that a bare machine lacks into one archive of a limited size.

    python3 pack.py BUILD STAGE ARCHIVE [--limit BYTES] [--fast] PROGRAM...

BUILD: the build folder of the programs. STAGE: a folder that already has decks, text and references; programs and libraries are
added to it. The archive is a tar file, compressed by xz. If it is larger than the limit, test programs are left out, the last of
the list first. PROGRAM: a name in BUILD, or a path.
"""

import argparse
import hashlib
import lzma
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

# Every machine with a C++ program has these, and they belong to its kernel or its driver.
SYSTEM = re.compile(r"(linux-vdso|ld-linux-x86-64|lib(c|m|dl|pthread|rt|resolv|util|stdc\+\+|gcc_s|cuda))\.so")
# NVIDIA's wheels or a toolkit have these.
CUDA = re.compile(r"lib(cudart|cublas|cublasLt|cudnn\w*|nccl|nvrtc\S*|nvJitLink)\.so")
# The newest symbols that the other machine's system libraries have: those of Ubuntu 24.04.
NEWEST = {"GLIBC": (2, 39), "GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15)}
VERSION = re.compile(r"\b(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)+)\b")
REGISTERS = re.compile(r" [TtWw] __cudaRegisterFatBinary\b")


def complain(text):
    raise SystemExit(f"pack.py: {text}")


def closure(programs, ldd="ldd"):
    """{name: path} of the libraries that the programs load, less those that the other machine has."""
    found = {}
    for program in programs:
        done = subprocess.run([ldd, program], capture_output=True, text=True)
        if done.returncode != 0:
            complain(f"{ldd} {program}: {done.stderr.strip()}")
        for line in done.stdout.splitlines():
            name, arrow, path = line.strip().partition(" => ")
            if not arrow or SYSTEM.match(name) or CUDA.match(name):
                continue
            if path.startswith("not found"):
                complain(f"{program} needs {name}, which is not on this machine")
            found[name] = path.split(" (")[0]
    return found


def has_own_runtime(program):
    """Whether a program or library has a CUDA runtime linked in. A process would then have two, each with its own last error."""
    symbols = subprocess.run(["nm", program], capture_output=True, text=True)
    return bool(REGISTERS.search(symbols.stdout))


def too_new(text):
    """The versions of system libraries in readelf's text that the other machine lacks, sorted."""
    found = {(name, tuple(map(int, number.split(".")))) for name, number in VERSION.findall(text)}
    return [f"{name}_{'.'.join(map(str, number))}" for name, number in sorted(found) if number > NEWEST[name]]


def needs_newer_system(program):
    """The same of a program or library. readelf's section lists what it needs, not what it defines."""
    done = subprocess.run(["readelf", "--version-info", "--wide", program], capture_output=True, text=True)
    _, _, needs = done.stdout.partition("Version needs section")
    return too_new(needs)


def put(source, target):
    """Copies a file without its symbols."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    target.chmod(0o755)
    subprocess.run(["strip", target], check=True)


def filters(size, fast):
    """A dictionary of the size of everything: test programs repeat the kernels of kzero."""
    dictionary = 1 << 16
    while dictionary < size and dictionary < 1 << 29:
        dictionary *= 2
    level = {"preset": 0} if fast else {"preset": 9 | lzma.PRESET_EXTREME, "dict_size": dictionary}
    return [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, **level}]


def plain(member):
    """The same archive for the same files."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def archive(stage, path, fast):
    size = sum(file.stat().st_size for file in stage.rglob("*") if file.is_file())
    with lzma.open(path, "wb", filters=filters(size, fast)) as file, tarfile.open(mode="w|", fileobj=file) as tar:
        for entry in sorted(stage.iterdir()):
            tar.add(entry, entry.name, filter=plain)


def is_test(program):
    return program.name.startswith("test_")


def stage_files(programs, stage):
    """Puts programs and their libraries into bin and lib of the stage, in place of those of an earlier call."""
    for name in ("bin", "lib"):
        shutil.rmtree(stage / name, ignore_errors=True)
    places = {stage / "bin" / program.name: program for program in programs}
    places |= {stage / "lib" / name: Path(path).resolve() for name, path in closure(programs).items()}
    for target, source in places.items():
        if has_own_runtime(source):
            complain(f"{source} contains a CUDA runtime; all have to share libcudart (CMAKE_CUDA_RUNTIME_LIBRARY=Shared)")
        if newer := needs_newer_system(source):
            complain(f"{source} needs {', '.join(newer)}, which Ubuntu 24.04 lacks; build it on an older system")
        put(source, target)


def pack(programs, stage, path, limit, fast):
    """Returns the programs that were left out."""
    left_out = []
    while True:
        stage_files(programs, stage)
        archive(stage, path, fast)
        size = path.stat().st_size
        if size <= limit:
            return left_out
        last = next((program for program in reversed(programs) if is_test(program)), None)
        if last is None:
            path.unlink()
            complain(f"{path}: {size} bytes without any test program; the limit is {limit}")
        print(f"pack.py: {size / 2**20:.1f} MiB is more than {limit / 2**20:.1f} MiB; leaving out {last.name}", flush=True)
        programs = [program for program in programs if program != last]
        left_out.append(last.name)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("build", type=Path)
    parser.add_argument("stage", type=Path)
    parser.add_argument("archive", type=Path)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--limit", type=int, default=35 << 20)
    parser.add_argument("--fast", action="store_true")
    arguments = parser.parse_args()
    programs = [arguments.build / name for name in arguments.programs]  # an absolute path stays as it is
    for program in programs:
        if not program.exists():
            complain(f"{program} is missing")
    left_out = pack(programs, arguments.stage, arguments.archive, arguments.limit, arguments.fast)
    print(f"programs    {' '.join(sorted(path.name for path in (arguments.stage / 'bin').iterdir()))}")
    print(f"libraries   {len(list((arguments.stage / 'lib').iterdir()))}")
    print(f"left out    {' '.join(left_out) or 'nothing'}")
    digest = hashlib.sha256(arguments.archive.read_bytes()).hexdigest()
    print(f"{arguments.archive}: {arguments.archive.stat().st_size / 2**20:.1f} MiB, sha256 {digest}")


if __name__ == "__main__":
    main()
