"""Lays out a folder that runs where it is unpacked: what cmake --install writes, and in lib/kzero the libraries that a computing
centre may lack. Checks that nothing else is needed, and makes a tarball of it. Called by package.sh.

    python3 package.py BUILD [--folder FOLDER] [--limit GLIBC=2.34]...

--folder FOLDER: makes this folder and no tarball.
--limit NAME=VERSION: the newest version of a system library's symbols that the package may need.
"""

import argparse
import gzip
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What the centre provides: glibc, the libraries of its compiler, and MPI under the two names of MPICH's ABI.
MPI, DEBIANS_MPI = "libmpi.so.12", "libmpich.so.12"
SYSTEM = re.compile(rf"ld-linux.*|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so\.\d+|{MPI}|{DEBIANS_MPI}")
# RHEL 9 has glibc 2.34 and the libraries of GCC 11.
LIMITS = {"GLIBC": "2.34", "GLIBCXX": "3.4.29", "CXXABI": "1.3.13", "GCC": "7.0.0"}

# Packages of Debian whose licences are those of what is linked or copied
LICENCES = "libcli11-dev libdnnl-dev libfmt-dev libhdf5-mpich-dev libicu-dev libopenblas-openmp-dev".split()
LICENCES += "libtomlplusplus-dev libxxhash-dev nlohmann-json3-dev".split()

README = """\
kzero {version} for CPUs ({processor}). It needs glibc {glibc} or newer, the libraries of GCC 11 or newer, and an MPI library with
MPICH's ABI (libmpi.so.12): MPICH, Intel MPI, MVAPICH, or Cray MPICH (module cray-mpich-abi). Load its module first.

    mpiexec -n 2 bin/kzero train share/kzero/input/quickstart.toml 'data.files=share/kzero/docs/*.md'

trains a small model on kzero's documents. The folder may be moved. For jobs, put bin/ into PATH, or
`module use $PWD/share/modulefiles && module load kzero`. share/kzero/README.md goes on from here, share/kzero/jobscripts has the
job scripts, and share/kzero/docs/installing.md says what is in this package.
"""


def output_of(*command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def read(file):
    """The names of the libraries that a file needs, its search path, and the versions of symbols that it needs."""
    text = output_of("objdump", "-p", file)
    references = text.partition("Version References:")[2]
    return (
        re.findall(r"^\s+NEEDED\s+(\S+)", text, re.M),
        re.findall(r"^\s+(?:RUNPATH|RPATH)\s+(\S+)", text, re.M),
        re.findall(r"^\s+0x\S+ 0x\S+ \d+ (\S+)", references, re.M),
    )


def places_of(program):
    """{name: path} of the libraries that the loader finds for a program here."""
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", program), re.M))


def is_below(version, limit):
    def numbers(text):
        return [int(n) for n in text.split(".")]

    return numbers(version) <= numbers(limit)


def problems_of(folder, limits):
    """What the package's program and libraries need and will not find, one sentence each."""
    found = []
    bundled = {file.name for file in (folder / "lib/kzero").iterdir() if not file.is_symlink()}
    for file in [folder / "bin/kzero", *sorted(folder / "lib/kzero" / name for name in bundled)]:
        needed, paths, versions = read(file)
        name = file.relative_to(folder)
        for library in needed:
            if library not in bundled and not SYSTEM.fullmatch(library):
                found.append(f"{name} needs {library}, which is neither the system's nor in lib/kzero")
        for path in ":".join(paths).split(":"):
            if path and not path.startswith("$ORIGIN"):
                found.append(f"{name} looks for libraries in {path}")
        for version in versions:
            kind, _, number = version.partition("_")
            if kind in limits and re.fullmatch(r"[\d.]+", number) and not is_below(number, limits[kind]):
                symbols = re.findall(rf"\({re.escape(version)}\)\s+(\S+)", output_of("objdump", "-T", file))
                found.append(f"{name} needs {version} for {', '.join(symbols)}; allowed is {kind}_{limits[kind]}")
    return found


def own_name(library):
    """Under a name of their own, the libraries are not mistaken for those of a module that the site's MPI needs."""
    return library.replace(".so", "-kzero.so", 1)


def bundle(folder):
    """Copies the libraries that the system may lack. Program and libraries find them by paths relative to themselves."""
    program, libraries = folder / "bin/kzero", folder / "lib/kzero"
    if not {MPI, DEBIANS_MPI} & set(read(program)[0]):
        sys.exit("package.py: the program was linked with an MPI library that has not MPICH's ABI")
    libraries.mkdir(parents=True)
    places = places_of(program)
    files, copied = [program], {}
    for file in files:  # grows
        for library in read(file)[0]:
            if library not in copied and not SYSTEM.fullmatch(library):
                copied[library] = libraries / own_name(library)
                shutil.copy(places[library], copied[library])
                copied[library].chmod(0o755)
                files.append(copied[library])
    for file in files:
        # Each change is a call of its own: patchelf 0.14 mixes their values up.
        if file != program:
            output_of("patchelf", "--set-soname", file.name, file)
        for library in read(file)[0]:
            name = copied[library].name if library in copied else MPI if library == DEBIANS_MPI else library
            if name != library:
                output_of("patchelf", "--replace-needed", library, name, file)
        output_of("patchelf", "--set-rpath", "$ORIGIN/../lib/kzero" if file == program else "$ORIGIN", file)
    # Debian and Ubuntu call the library differently. The loader looks here after LD_LIBRARY_PATH; elsewhere the link leads nowhere.
    (libraries / MPI).symlink_to(f"/usr/lib/{platform.machine()}-linux-gnu/{DEBIANS_MPI}")


def add_texts(folder, version, limits):
    (folder / "README").write_text(README.format(version=version, processor=platform.machine(), glibc=limits["GLIBC"]))
    texts = folder / "licences"
    texts.mkdir()
    compiler = output_of("gcc", "-dumpversion").strip().partition(".")[0]
    for package in [*LICENCES, f"gcc-{compiler}-base"]:
        shutil.copy(f"/usr/share/doc/{package}/copyright", texts / package)
    shutil.copy(ROOT / ".deps/source/pygenten-0.1.5/tpls/kokkos/LICENSE", texts / "kokkos")


def pack(folder, tarball):
    """The same commit and libraries give the same bytes."""
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or output_of("git", "-C", ROOT, "log", "-1", "--format=%ct"))

    def anonymous(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = seconds
        return entry

    with (
        open(tarball, "wb") as file,
        gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=seconds) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive,
    ):
        archive.add(folder, folder.name, filter=anonymous)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("\n\n")[2])
    parser.add_argument("build", type=Path)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--limit", action="append", default=[])
    arguments = parser.parse_args()
    limits = LIMITS | dict(text.split("=") for text in arguments.limit)
    cache = (arguments.build / "CMakeCache.txt").read_text()
    version = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", cache, re.M).group(1)
    cmake = re.search(r"^CMAKE_COMMAND:INTERNAL=(.*)$", cache, re.M).group(1)
    name = f"kzero-{version}-linux-{platform.machine()}"
    with tempfile.TemporaryDirectory(prefix="kzero_package_") as temporary:
        folder = arguments.folder or Path(temporary) / name
        output_of(cmake, "--install", arguments.build, "--prefix", folder.absolute())
        bundle(folder)
        add_texts(folder, version, limits)
        if problems := problems_of(folder, limits):
            sys.exit("\n".join(f"package.py: {problem}" for problem in problems))
        if arguments.folder:
            return
        tarball = arguments.build / f"{name}.tar.gz"
        pack(folder, tarball)
        print(f"{tarball}: {tarball.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
