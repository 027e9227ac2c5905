"""Configures a plain build, without a preset, with what the environment names (KZERO_CMAKE, KZERO_KOKKOS)."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Configure(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kzero_configure_")
        self.addCleanup(folder.cleanup)
        self.build = Path(folder.name)

    def configure(self, *options):
        environment = {name: value for name, value in os.environ.items() if name != "CMAKE_BUILD_TYPE"}
        return subprocess.run([os.environ["KZERO_CMAKE"], "-S", ROOT, "-B", self.build, "-DKZERO_TESTS=OFF", *options],
                              env=environment, capture_output=True, text=True, timeout=250)

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


if __name__ == "__main__":
    unittest.main()
