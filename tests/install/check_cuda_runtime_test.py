"""Proves that check_cuda_runtime.py accepts a file that shares the CUDA runtime and names what is wrong with others."""

import unittest

from check_cuda_runtime import problem_of

SHARED = """
 0x0000000000000001 (NEEDED)             Shared library: [libcudart.so.13]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
"""
ALONE = " 0x0000000000000001 (NEEDED)             Shared library: [libcuda.so.1]\n"
REFERENCE = "   214: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND cudaLaunchKernel@libcudart.so.13 (7)\n"
COPY = "  4711: 00000000000afd30   523 FUNC    LOCAL  DEFAULT   14 cudaLaunchKernel\n"


class CheckCudaRuntime(unittest.TestCase):
    def test_a_file_that_shares_the_runtime_passes(self):
        self.assertEqual(problem_of(SHARED, REFERENCE), "")

    def test_a_file_without_the_library_is_named(self):
        self.assertEqual(problem_of(ALONE, COPY), "does not link libcudart.so")

    def test_a_copy_beside_the_library_is_named(self):
        self.assertEqual(problem_of(SHARED, REFERENCE + COPY), "contains a copy of the runtime")


if __name__ == "__main__":
    unittest.main()
