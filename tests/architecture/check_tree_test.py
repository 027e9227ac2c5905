"""Proves that check_tree.py passes a good tree and names each kind of breach."""

import tempfile
import unittest
from pathlib import Path

from check_tree import check_tree

EDGES = "level 0\nbase:\nlevel 1\ngrid: base\ndeck: base\nlevel 2\ncomm: base grid deck/config.hpp\n"
GOOD = {
    "base/error.hpp": "namespace kzero {}\n",
    "deck/config.hpp": "namespace kzero::deck {}\n",
    "deck/reader.hpp": "namespace kzero::deck {}\n",
    "grid/group.hpp": '#include "base/error.hpp"\nnamespace kzero::grid { inline auto world = MPI_COMM_WORLD; }\n',
    "comm/CMakeLists.txt": "kzero_folder(comm USES base grid LIBRARIES MPI::MPI_CXX)\n",
    "comm/nccl_group.cpp": "namespace kzero::comm { auto sum = &ncclAllReduce; }\n",
    "comm/group.cpp": """#include <mpi.h>

#include "deck/config.hpp"
#include "grid/group.hpp"
#include "version_info.hpp"

namespace kzero::comm {

struct Thing {  // no MPI_COMM_WORLD here, nor cudaMalloc
  void fence() const;
  Thing() : text_{"a { brace"}, size_(1) { run(); }
};

void Thing::run() {
  exec.fence("kzero::comm::ready");
  Kokkos::parallel_for(
      "kzero::comm::add", policy, [=](int i) {
        Kokkos::parallel_reduce(Kokkos::TeamVectorRange(team, n), f, sum);
      });
  parallel_for(label, policy, f);
}

}  // namespace kzero::comm
""",
}


class CheckTree(unittest.TestCase):
    def breaches(self, changes=None, edges=EDGES):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "src"
            for name, text in {**GOOD, **(changes or {})}.items():
                path = source / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            list_of_edges = Path(folder) / "edges.txt"
            list_of_edges.write_text(edges)
            return check_tree(source, list_of_edges)

    def expect(self, expected, changes=None, edges=EDGES):
        found = self.breaches(changes, edges)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def comm(self, body):
        return {"comm/more.cpp": "namespace kzero::comm {\n" + body + "\n}\n"}

    def test_a_good_tree_passes(self):
        self.assertEqual(self.breaches(), [])

    def test_an_empty_tree_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            edges = Path(folder) / "edges.txt"
            edges.write_text(EDGES)
            self.assertIn("no sources", check_tree(Path(folder) / "src", edges)[0])

    def test_an_include_upwards(self):
        self.expect(
            "grid/more.hpp:1: grid may not include comm/group.hpp",
            {"grid/more.hpp": '#include "comm/group.hpp"\n', "comm/group.hpp": ""},
        )

    def test_an_include_sideways(self):
        self.expect(
            "grid/more.hpp:2: grid may not include deck/config.hpp", {"grid/more.hpp": '\n  #  include "deck/config.hpp"\n'}
        )

    def test_a_header_beside_the_one_allowed(self):
        self.expect("comm/more.hpp:1: comm may not include deck/reader.hpp", {"comm/more.hpp": '#include "deck/reader.hpp"\n'})

    def test_an_include_in_a_comment_is_none(self):
        self.assertEqual(self.breaches({"grid/more.hpp": '// #include "comm/group.hpp"\n'}), [])

    def test_a_folder_that_has_to_do_without_kokkos(self):
        kokkos = {"base/view.hpp": "#include <Kokkos_Core.hpp>\n", "grid/more.hpp": '#include "base/view.hpp"\n'}
        self.assertEqual(self.breaches(kokkos), [])
        self.expect("grid/more.hpp:1: reaches Kokkos_Core.hpp", kokkos, "without Kokkos: deck grid\n" + EDGES)
        self.expect(
            'edges.txt: the line "without Kokkos:" names gird, which is not a folder',
            edges="without Kokkos: deck gird\n" + EDGES,
        )

    def test_an_include_that_does_not_exist(self):
        self.expect("there is no group.hpp", {"grid/more.hpp": '#include "group.hpp"\n'})

    def test_a_folder_that_is_not_listed(self):
        self.expect("folder utils is not in edges.txt", {"utils/misc.hpp": ""})

    def test_a_list_that_allows_an_upward_edge(self):
        self.expect("deck (level 1) may not use grid: not a lower level", edges=EDGES.replace("deck: base", "deck: base grid"))

    def test_a_link_that_is_not_allowed(self):
        self.expect(
            "grid/CMakeLists.txt:1: grid may not link to comm",
            {"grid/CMakeLists.txt": "kzero_folder(grid USES base\n  comm)\n"},
        )

    def test_a_foreign_namespace(self):
        self.expect(
            "comm/more.cpp:1: namespace kzero::grid; in this folder it is kzero::comm",
            {"comm/more.cpp": "namespace kzero::grid {}\n"},
        )

    def test_types_of_a_folder_below_may_be_declared(self):
        declared = "namespace kzero::grid {\nclass Group;\n}\n"
        for folder in ("grid", "deck"):  # comm may include a single header of deck
            self.assertEqual(self.breaches({"comm/more.hpp": declared.replace("grid", folder)}), [])
        self.expect(
            "comm/more.hpp:1: namespace kzero::grid", {"comm/more.hpp": declared.replace("class Group;", "class Group {};")}
        )
        self.expect("grid/more.hpp:1: namespace kzero::comm", {"grid/more.hpp": declared.replace("grid", "comm")})

    def test_a_long_function(self):
        self.expect(
            "comm/more.cpp:3: a function of 61 lines",
            self.comm("int a = 0;\nvoid f() {\n" + "  if (a) { a = {}; }\n" * 59 + "}"),
        )

    def test_a_function_of_the_longest_length(self):
        self.assertEqual(self.breaches(self.comm("void f() {\n" + "  a();\n" * 58 + "}")), [])

    def test_a_long_method_after_an_initializer_list(self):
        self.expect(
            "comm/more.cpp:4: a function of 70 lines",
            self.comm("class A {\n  A()\n  : a_{1}, b_(2) {\n" + "    a();\n" * 68 + "}\n};"),
        )

    def test_the_world_outside_runtime_and_grid(self):
        self.expect("comm/more.cpp:2: MPI_COMM_WORLD", self.comm("auto world = MPI_COMM_WORLD;"))

    def test_a_device_name_in_a_portable_file(self):
        for name in ("cudaMalloc", "cublasLtMatmul", "ncclAllReduce", "__CUDA_ARCH__", "KOKKOS_ENABLE_CUDA", "Kokkos::Cuda"):
            self.expect(f"comm/more.cpp:2: {name}", self.comm(f"auto f = {name};"))
        for name in ("hipMalloc", "hipblasLtMatmul", "__HIP_PLATFORM_AMD__", "KZERO_HIP", "KOKKOS_ENABLE_HIP", "Kokkos::HIP"):
            self.expect(f"comm/more.cpp:2: {name}", self.comm(f"auto f = {name};"))

    def test_a_library_as_a_value(self):
        self.assertEqual(self.breaches(self.comm("enum class Backend { nccl, cublaslt };")), [])

    def test_a_launch_without_a_label(self):
        for call in ("parallel_for(policy, f)", "Kokkos::parallel_scan(n, f)", "exec.fence()", "Kokkos::fence()"):
            self.expect("without a literal label", self.comm(f"void f() {{ {call}; }}"))

    def test_a_label_of_another_form(self):
        self.expect("without a literal label", self.comm('void f() { parallel_for(name + "add", policy, f); }'))
        self.expect('label "kzero::grid::add"', self.comm('void f() { parallel_for("kzero::grid::add", policy, f); }'))
        self.expect('label "kzero::comm::add Numbers"', self.comm('auto a = "kzero::comm::add Numbers";'))

    def test_a_range_of_32_bits(self):
        for policy in (
            "RangePolicy<Execution>(exec, 0, n)",
            "RangePolicy(exec, 0, n)",
            "MDRangePolicy<Kokkos::Rank<2>>(a, b)",
            "RangePolicy<Execution>(exec, 0, Kokkos::IndexType<Index>::n)",
        ):
            self.expect(
                "comm/more.cpp:2: Kokkos::" + policy.split("P")[0] + "Policy without an IndexType",
                self.comm(f"auto policy = Kokkos::{policy};"),
            )

    def test_a_range_that_says_its_index(self):
        for policy in (
            "RangePolicy<Execution, Kokkos::IndexType<Index>>(exec, 0, n)",
            "MDRangePolicy<Kokkos::Rank<2>, Kokkos::IndexType<int>>",
        ):
            self.assertEqual(self.breaches(self.comm(f"using Policy = Kokkos::{policy};")), [])


if __name__ == "__main__":
    unittest.main()
