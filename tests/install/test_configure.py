"""Configures a plain build, without a preset, with what the environment names (KZERO_CMAKE, KZERO_KOKKOS)."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/architecture"))

import compile_hip  # noqa: E402


class Configure(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kzero_configure_")
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)

    def configure(self, *options, **variables):
        environment = {name: value for name, value in os.environ.items() if name != "CMAKE_BUILD_TYPE"}
        environment |= {"CMAKE_GENERATOR": "Ninja"} | variables
        return subprocess.run(
            [os.environ["KZERO_CMAKE"], "-S", ROOT, "-B", self.build, "-DKZERO_TESTS=OFF", *options],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=250,
        )

    def test_a_plain_build_is_optimised_and_says_so(self):
        result = self.configure(f"-DKokkos_DIR={os.environ['KZERO_KOKKOS']}")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("CMAKE_BUILD_TYPE is not set: Release", result.stdout)
        self.assertIn("CMAKE_BUILD_TYPE:STRING=Release", (self.build / "CMakeCache.txt").read_text())
        self.assertIn("-O3", (self.build / "compile_commands.json").read_text())

    def test_a_missing_kokkos_says_where_one_comes_from(self):
        result = self.configure("-DCMAKE_DISABLE_FIND_PACKAGE_Kokkos=ON")
        self.assertNotEqual(result.returncode, 0)
        said = " ".join(result.stderr.split())
        for text in ("Kokkos 4.7 or newer is missing", "bash cmake/debian.sh", "Kokkos_ROOT"):
            self.assertIn(text, said)

    def test_the_presets_for_devices_refuse_a_kokkos_for_hosts(self):
        kokkos = Path(os.environ["KZERO_KOKKOS"])
        devices = re.search(r"set\(Kokkos_DEVICES (.*)\)", (kokkos / "KokkosConfigCommon.cmake").read_text()).group(1)
        built_for = devices.replace(";", ", ")
        places = {
            "cuda": "`bash cmake/debian.sh cuda` builds one for CUDA into .deps/kokkos-cuda; elsewhere set Kokkos_ROOT to one.",
            "hip": "Set Kokkos_ROOT to one for HIP.",
        }
        for preset, place in places.items():
            device = preset.upper()
            if device in devices:
                continue  # this build's Kokkos is for it
            result = self.configure("--fresh", "--preset", preset, f"-DKokkos_DIR={kokkos}")
            self.assertNotEqual(result.returncode, 0)
            said = " ".join(result.stderr.split())
            self.assertIn(f"KZERO_DEVICE is {device}, but the Kokkos in {kokkos} was built for {built_for}. {place}", said)

    def test_a_kokkos_for_hip_says_what_of_rocm_is_missing(self):
        host = Path(os.environ["KZERO_KOKKOS"]).parents[2]
        if host.name != "kokkos-host":
            self.skipTest("this build's Kokkos is not that of cmake/kokkos.sh for hosts")
        folder = self.build / "kokkos"
        compile_hip.configure_kokkos(host, folder)
        options = [f"-DKokkos_DIR={folder / 'lib/cmake/Kokkos'}"]
        options += [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in compile_hip.PACKAGES]
        refusals = {
            "g++": "Set CMAKE_CXX_COMPILER to hipcc or amdclang++.",
            "clang++": "Not found: hip, hipblaslt, rccl. Set ROCM_PATH",
        }
        for compiler, text in refusals.items():
            if shutil.which(compiler) is None:
                continue
            result = self.configure("--fresh", "--preset", "hip", *options, f"-DCMAKE_CXX_COMPILER={compiler}")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(text, " ".join(result.stderr.split()))

    def test_missing_googletest_says_how_to_build_without_tests(self):
        result = self.configure(
            f"-DKokkos_DIR={os.environ['KZERO_KOKKOS']}", "-DKZERO_TESTS=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON"
        )
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("-DKZERO_TESTS=OFF builds without tests", " ".join(result.stderr.split()))

    def test_a_preset_compiles_through_ccache_where_it_is_installed(self):
        tools = self.build / "tools"
        tools.mkdir()
        (tools / "ccache").symlink_to("/bin/false")
        kokkos = f"-DKokkos_DIR={os.environ['KZERO_KOKKOS']}"
        for found, options in ((True, ()), (False, ["-DKZERO_CCACHE_PROGRAM="])):
            result = self.configure("--preset", "release", kokkos, *options, PATH=f"{tools}:{os.environ['PATH']}")
            self.assertEqual(result.returncode, 0, result.stderr)
            rules = "".join(path.read_text() for path in self.build.rglob("*.ninja"))  # newer versions of CMake: in build.ninja
            self.assertEqual(f"{tools}/ccache " in rules, found)
            self.assertEqual("ccache" in rules, found)


if __name__ == "__main__":
    unittest.main()
