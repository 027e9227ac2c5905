"""Proves that check_machine_code.py passes good kernels and names each kind of breach."""

import tempfile
import unittest
from pathlib import Path

from check_machine_code import check, identifiers, kernels_of, read_bounds, short

RESOURCES = """
 Function _ZN6Kokkos4Impl33cuda_parallel_launch_{memory}_memoryINS0_11ParallelForIN5kzero7kernels4FillENS_4CudaEEEEEvT_:
  REG:{registers} STACK:{stack} SHARED:0 LOCAL:0
"""
CODE = """
\t\tFunction : _ZN6Kokkos4Impl33cuda_parallel_launch_local_memoryINS0_11ParallelForIN5kzero7kernels4FillENS_4CudaEEEEEvT_
        /*0000*/                   LDC R1, c[0x0][0x28] ;   /* 0x00000a00ff017b82 */
                                                            /* 0x000fe20000000800 */
        /*0010*/              @!P0 LD.E R4, [R2.64] ;       /* 0x0000000000047981 */
        /*0020*/                   HMMA.16816.F32 R4, R4, R8, R12 ;
"""
BOUNDS = "# comment\nFill | 32 | 8 | HMMA LD<=1 !LDL\n"


class CheckMachineCode(unittest.TestCase):
    def breaches(self, bounds=BOUNDS, code=CODE, registers=32, stack=8, memory="local"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bounds.txt"
            path.write_text(bounds)
            lines, problems = read_bounds(path)
        resources = RESOURCES.format(registers=registers, stack=stack, memory=memory)
        return problems + check(kernels_of(resources, code), lines)

    def test_kernels_within_their_bounds_pass(self):
        self.assertEqual(self.breaches(), [])

    def test_breaches_are_named(self):
        for expected, change in (
            ("33 registers, at most 32 (line 2)", {"registers": 33}),
            ("16 bytes of stack, at most 8", {"stack": 16}),
            ("no HMMA", {"code": CODE.replace("HMMA", "FFMA")}),
            ("2 LD, at most 1", {"code": CODE.replace("LDC", "LD")}),
            ("1 LDL, none allowed", {"code": CODE.replace("LDC", "LDL")}),
            ("no line of the bounds", {"bounds": "# none\n"}),
            ("line 3: no kernel is Gone", {"bounds": BOUNDS + "Gone | 1 | 0\n"}),
            ("bounds.txt:3: not \"kernel", {"bounds": BOUNDS + "Fill | many\n"}),
        ):
            with self.subTest(expected):
                found = self.breaches(**change)
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])

    def test_a_functor_in_constant_memory_is_a_breach(self):
        self.assertIn("constant memory", self.breaches(memory="constant")[0])

    def test_names_are_short(self):
        self.assertEqual(
            short("void f<Kokkos::Impl::ParallelFor<kzero::kernels::A<kzero::bf16, 64>, Kokkos::B>(int)"), "A<bf16, 64>"
        )
        self.assertEqual(identifiers("_ZN5kzero7kernelsIS4_15update_xLi12ES_Ev"), ["kzero", "kernels", "update_xLi12ES_"])


if __name__ == "__main__":
    unittest.main()
