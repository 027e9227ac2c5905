"""Proves that check_dependencies.py passes this tree and names each kind of difference."""

import shutil
import tempfile
import unittest
from pathlib import Path

from check_dependencies import RECIPE, check_dependencies

ROOT = Path(__file__).parents[2]
FILES = ("CMakeLists.txt", *(f"cmake/{name}.cmake" for name in ("Dependencies", "MpiAndHdf5", "Cuda")), "spack.yaml", RECIPE)


class CheckDependencies(unittest.TestCase):
    def breaches(self, file=None, old="", new=""):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in FILES:
                (root / name).parent.mkdir(exist_ok=True, parents=True)
                shutil.copy(ROOT / name, root / name)
            if file:
                text = (root / file).read_text()
                self.assertIn(old, text)
                (root / file).write_text(text.replace(old, new, 1))
            return check_dependencies(root)

    def test_this_tree_agrees(self):
        self.assertEqual(self.breaches(), [])

    def test_each_difference_is_named(self):
        for file, old, new, expected in (
            (
                "cmake/Dependencies.cmake",
                "find_package(fmt 9",
                "find_package(fmt 10",
                "the recipe: fmt ('9', ''), elsewhere ('10', '')",
            ),
            ("cmake/Dependencies.cmake", "find_package(BLAS REQUIRED)", "", "the recipe has blas, which nothing asks for"),
            ("cmake/Dependencies.cmake", "find_package(BLAS", "find_package(zstd)\nfind_package(BLAS", "the recipe lacks zstd"),
            ("cmake/Cuda.cmake", "find_package(NCCL", "find_package(cuTENSOR", "the recipe lacks cutensor"),
            (
                "cmake/Cuda.cmake",
                "find_package(cuDNN 9.11",
                "find_package(cuDNN 9.12",
                "the recipe: cudnn ('9.11', 'cuda'), elsewhere ('9.12', 'cuda')",
            ),
            ("CMakeLists.txt", "VERSION 3.25", "VERSION 3.28", "the recipe: cmake ('3.25', ''), elsewhere ('3.28', '')"),
            (RECIPE, '    depends_on("mpi")\n', "", "the recipe lacks mpi"),
            (RECIPE, "googletest@1.12:", "googletest@1.13:", "spack.yaml: googletest 1.12, elsewhere 1.13"),
            (
                RECIPE,
                'depends_on("xxhash")',
                'depends_on("xxhash", when="+tests")',
                "the recipe: xxhash ('', 'tests'), elsewhere ('', '')",
            ),
            ("spack.yaml", "  - xxhash\n", "", "spack.yaml lacks xxhash"),
            ("spack.yaml", "  - xxhash\n", "  - xxhash\n  - zstd\n", "spack.yaml has zstd, which nothing asks for"),
            ("spack.yaml", '"fmt@9:"', "fmt@9:", "spack.yaml:16: - fmt@9: needs quotes"),
            ("spack.yaml", '"hdf5@1.10: +mpi"', "hdf5@1.10: +mpi", "spack.yaml:11: - hdf5@1.10: +mpi needs quotes"),
            ("spack.yaml", "kokkos@4.7:4", "kokkos@4.6:4", "spack.yaml: kokkos 4.6, elsewhere 4.7"),
        ):
            with self.subTest(new or old):
                self.assertIn(expected, self.breaches(file, old, new))


if __name__ == "__main__":
    unittest.main()
