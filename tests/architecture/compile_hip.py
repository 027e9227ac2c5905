"""Do the sources for devices compile for AMD GPUs, without a warning? Nothing is generated, and nothing is linked.

    python3 compile_hip.py FOLDER KOKKOS [COMMITS]

FOLDER: gets a configured build for HIP. KOKKOS: an installed Kokkos for hosts, whose headers are configured for HIP here.
COMMITS: compiles only sources that reach a file that the last so many commits changed. Without it, with a history that is
shorter, or if they changed how every source is read: all.
HIP's headers are those of Debian's libamdhip64-dev. Debian lacks hipBLASLt and RCCL: tests/architecture/hip declares their functions.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import clang_check
from includes import reached
from new_commits import changed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("kernels", "tensor", "optim", "runtime", "comm")  # of src/ that have kernels or call the libraries
HIP_ONLY = ("device_hip.cpp", "gemm_cublaslt.cpp", "nccl_communicator.cpp")  # some of the sources that the build has to select
MEANING = ("cmake", "tests/architecture/compile_hip.py", "tests/architecture/hip")  # decides how every source is read
# The host is compiled once, with the first GPU.
GPUS = {"gfx90a": [], "gfx942": ["--cuda-device-only"]}
OPTIONS = "-x hip -nogpulib --rocm-path=/usr".split()
# CMake's packages of ROCm, the target of each, and what it gives to those who link it
PACKAGES = {
    "hip": ("hip::host", "INTERFACE_COMPILE_DEFINITIONS __HIP_PLATFORM_AMD__"),
    "hipblaslt": ("roc::hipblaslt", f"INTERFACE_INCLUDE_DIRECTORIES {ROOT}/tests/architecture/hip"),
    "rccl": ("roc::rccl", f"INTERFACE_INCLUDE_DIRECTORIES {ROOT}/tests/architecture/hip"),
}
# Differences of a Kokkos for HIP: file, text, replacement
KOKKOS_FOR_HIP = [
    ("include/KokkosCore_config.h", "/* #undef KOKKOS_ENABLE_HIP */", "#define KOKKOS_ENABLE_HIP"),
    ("include/KokkosCore_config.h", "/* #undef KOKKOS_ARCH_AMD_GPU */", '#define KOKKOS_ARCH_AMD_GPU "MI"'),
    ("include/KokkosCore_Config_DeclareBackend.hpp", "\n\n#endif", "\n#include <decl/Kokkos_Declare_HIP.hpp>\n#endif"),
    ("include/KokkosCore_Config_FwdBackend.hpp", "\n\n#endif", "\n#include <fwd/Kokkos_Fwd_HIP.hpp>\n#endif"),
    ("include/KokkosCore_Config_SetupBackend.hpp", "\n\n#endif", "\n#include <setup/Kokkos_Setup_HIP.hpp>\n#endif"),
    ("include/desul/atomics/Config.hpp", "/* #undef DESUL_ATOMICS_ENABLE_HIP */", "#define DESUL_ATOMICS_ENABLE_HIP"),
    ("lib/cmake/Kokkos/KokkosConfigCommon.cmake", "set(Kokkos_DEVICES ", "set(Kokkos_DEVICES HIP;"),
]


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def configure_kokkos(host, folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(os.path.abspath(host), folder, copy_function=os.symlink)
    for name, old, new in KOKKOS_FOR_HIP:
        path = os.path.join(folder, name)
        with open(path) as file:
            text = file.read()
        if text.count(old) != 1:
            sys.exit(f"{path} does not have once: {old}")
        os.unlink(path)  # a link
        write(path, text.replace(old, new))


def configure(folder, host):
    """Configures kzero for HIP, with Debian's default Clang, for which there is OpenMP. Returns the compile commands."""
    kokkos = os.path.join(folder, "kokkos")
    configure_kokkos(host, kokkos)
    options = [f"-DKokkos_ROOT={kokkos}", "-DKZERO_TESTS=OFF", "-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++"]
    for name, (target, content) in PACKAGES.items():
        package = os.path.join(folder, name)
        os.makedirs(package, exist_ok=True)
        text = f"add_library({target} INTERFACE IMPORTED)\nset_target_properties({target} PROPERTIES {content})\n"
        write(os.path.join(package, f"{name}-config.cmake"), text)
        options.append(f"-D{name}_DIR={package}")
    done = subprocess.run(["cmake", "--preset", "hip", "-B", folder, *options], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    with open(os.path.join(folder, "compile_commands.json")) as file:
        return json.load(file)


def changed_sources(content, commits):
    """Each line of content includes a source. Returns the lines of sources that the last commits may have broken."""
    change = changed(commits)
    if not change or any(changed(commits, place)[0] for place in MEANING):
        return content
    files, _ = change
    src = os.path.realpath(os.path.join(ROOT, "src"))

    def may_be_broken(line):
        path = os.path.join(src, re.search(r'"(.+?)"', line)[1])
        return path in files or files & reached(path, src)

    return "".join(line for line in content.splitlines(keepends=True) if may_be_broken(line))


def main(folder, host, commits=None):
    folder = os.path.abspath(folder)
    commands = configure(folder, host)
    united = re.compile(rf"/kzero_({'|'.join(FOLDERS)})_device_\d+\.cpp$")
    commands = [c for c in commands if united.search(c["file"]) or c["file"].endswith("/src/runtime/execution.cpp")]
    content = ""
    for command in commands:
        with open(command["file"]) as file:
            content += file.read() if united.search(command["file"]) else f'#include "{command["file"]}"\n'
    missing = [name for name in HIP_ONLY if f"/{name}" not in content]
    if missing:
        sys.exit(f"{folder} does not compile {', '.join(missing)}")
    if commits:
        content = changed_sources(content, commits)
    if not content:
        print(f"the last {commits} commits changed no source for AMD GPUs")
        return False
    joined = os.path.join(folder, "joined.cpp")
    write(joined, content)  # most of a source's time goes to headers

    words = [w for c in commands for w in clang_check.meaning(clang_check.words_of(c), "-f", "-m")]
    with tempfile.TemporaryDirectory() as headers:
        words = [*clang_check.WORDS, *OPTIONS, *dict.fromkeys(words), *clang_check.write_headers(headers, {})]
        checks = []
        for gpu, only in GPUS.items():
            own = [f"--offload-arch={gpu}", f"-DKOKKOS_ARCH_AMD_{gpu.upper()}", *only]
            checks.append(([*words, *own, joined], folder))
        return clang_check.run(checks, f"{content.count('#include')} sources for {' and '.join(GPUS)}")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
