// Algorithms from a table, and the measurement of one, against the double of cuBLASLt.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "doubles/cublaslt.hpp"
#include "doubles/cuda_runtime.hpp"
#include "support/products.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

namespace {

using tests::cublaslt;
using tests::Guarded;
using tests::LibraryAlgorithm;
using tests::numbers;
using tests::Size;

constexpr Size size{6, 8, 10};
constexpr LibraryAlgorithm first{{7, 20, 1, 0, 0, 0, 36, 0, 0}, 1.0};
constexpr LibraryAlgorithm faster{{66, 21, 4, 2, 1, 70000, 36, 65535, 2}, 0.8};

std::string failure_of(auto function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "none";
}

void expect_text(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

class CublasLtAlgorithms : public testing::Test {
 protected:
  CublasLtAlgorithms() { doubles::set_calls(doubles::Calls::at_once); }
  ~CublasLtAlgorithms() override {
    doubles::set_calls(doubles::Calls::late);
    cublaslt().algorithms = tests::CublasLtDouble().algorithms;
    EXPECT_EQ(cublaslt().alive, 0) << "objects of the library left over";
  }

  /// A back end with a workspace, over a library with these algorithms.
  struct Library {
    static constexpr Index bytes = CublasLtGemm::workspace_bytes(1024);
    Guarded<std::byte> workspace{bytes};
    CublasLtGemm gemm;

    explicit Library(const std::vector<LibraryAlgorithm>& algorithms) {
      cublaslt().algorithms = algorithms;
      gemm.use_workspace(workspace.data(), bytes);
    }

    /// What a measurement of the product finds.
    MeasuredAlgorithms measured(const GemmProblem& product, int calls = 1) {
      gemm.algorithms()->measure();
      for (int i = 0; i < calls; ++i) gemm.run({}, product);
      return gemm.algorithms()->measured();
    }
  };

  GemmProblem product(Accumulate accumulate = Accumulate::no) const {
    return {.m = size.m,
            .n = size.n,
            .k = size.k,
            .a = {a_.data(), size.k},
            .b = {b_.data(), size.n},
            .c = c_.data(),
            .c_stride = size.n,
            .in = Dtype::bf16,
            .out = Dtype::bf16,
            .accumulate = accumulate};
  }

  Guarded<bf16> a_{numbers<bf16>(size.m * size.k, 1)}, b_{numbers<bf16>(size.k * size.n, 2)};
  Guarded<bf16> c_{numbers<bf16>(size.m * size.n, 3)};
};

TEST_F(CublasLtAlgorithms, TheFastestIsMeasuredAndUsed) {
  CublasLtGemm plain;
  cublaslt().algorithms = {first};
  plain.run({}, product());
  const std::vector<bf16> expected = c_.host();
  EXPECT_EQ(cublaslt().computed_with, first.attributes);

  AlgorithmTable table;
  {
    Library library({first, faster, {{8, 20, 1, 0, 0, 0, 36, 0, 0}, 0.9}});
    const MeasuredAlgorithms found = library.measured(product(), 3);
    EXPECT_TRUE(tests::same_bits(c_.host(), expected));
    EXPECT_EQ(found.products, 1);
    EXPECT_NEAR(found.heuristic_ms, 3 * 1.0, 1e-6);
    EXPECT_NEAR(found.ms, 3 * 0.8, 1e-6);
    table = read_algorithms({"table", as_toml(found.table, "measured")});
  }
  ASSERT_EQ(table.products.size(), 1U);
  const auto& [name, entry] = *table.products.begin();
  EXPECT_EQ(name, "bf16 6 x 8 x 10 NN to bf16, strides 10 8 8, aligned 64 64 64 64");
  EXPECT_EQ(entry.algorithm, (Algorithm{66, 21, 4, 2, 1, 70000, 36, 65535, 2}));
  EXPECT_EQ(entry.calls, 3);
  EXPECT_NEAR(entry.heuristic_ms, 1.0, 1e-6);
  EXPECT_NEAR(entry.ms, 0.8, 1e-6);

  Library library({first, faster});
  library.gemm.algorithms()->use(table);
  c_.set(numbers<bf16>(size.m * size.n, 4));
  library.gemm.run({}, product());
  EXPECT_TRUE(tests::same_bits(c_.host(), expected));
  EXPECT_EQ(cublaslt().computed_with, faster.attributes);
  library.gemm.run({}, product(Accumulate::yes));
  EXPECT_EQ(cublaslt().computed_with, first.attributes);
  EXPECT_EQ(library.gemm.algorithms()->used().products, 2);
  EXPECT_EQ(library.gemm.algorithms()->used().from_table, 1);
}

TEST_F(CublasLtAlgorithms, NoAlgorithmIsTakenFor) {
  const std::pair<const char*, LibraryAlgorithm> cases[] = {
      {"less than a hundredth", {{8, 20, 1, 0, 0, 0, 36, 0, 0}, 0.995}},
      {"parts added as they arrive", {{8, 20, 4, 1, 0, 0, 36, 0, 0}, 0.5}},
      {"parts rounded to C's type", {{8, 20, 4, 4, 0, 0, 36, 0, 0}, 0.5}},
      {"parts of a sum without a scheme", {{8, 20, 4, 0, 0, 0, 36, 0, 0}, 0.5}},
      {"aligned addresses that the product lacks", {{8, 20, 1, 0, 0, 0, 36, 0, 0}, 0.5, 128}},
      {"a workspace that is not planned",
       {{8, 20, 1, 0, 0, 0, 36, 0, 0}, 0.5, 1, CublasLtGemm::scratch_bytes + 1}},
  };
  for (const auto& [what, algorithm] : cases) {
    Library library({first, algorithm});
    const MeasuredAlgorithms found = library.measured(product());
    EXPECT_TRUE(found.table.products.empty()) << what;
    EXPECT_EQ(found.ms, found.heuristic_ms) << what;
    EXPECT_EQ(found.products, 1) << what;
  }
}

TEST_F(CublasLtAlgorithms, EachProductIsMeasuredOnceWithWhatItAdds) {
  Library library({first, faster});
  library.measured(product());
  const Index products = cublaslt().products, sums = cublaslt().sums;
  library.gemm.run({}, product());
  EXPECT_EQ(cublaslt().products, products + 1);
  EXPECT_EQ(cublaslt().sums, sums);
  const MeasuredAlgorithms found = library.measured(product(Accumulate::yes));
  EXPECT_EQ(cublaslt().sums - sums, cublaslt().products - products - 1);
  EXPECT_EQ(found.products, 2);
  EXPECT_NEAR(found.heuristic_ms, 2 + 1, 1e-6);
  EXPECT_EQ(found.table.products.size(), 2U);
}

/// The table that a library measures, and a change to it.
AlgorithmTable changed(AlgorithmTable table, auto change) {
  change(table, table.products.begin()->second.algorithm);
  return table;
}

TEST_F(CublasLtAlgorithms, ATableIsRefusedElsewhere) {
  Library library({first, faster});
  const AlgorithmTable table = library.measured(product()).table;
  Library other({first, faster});
  const auto refusal = [&](auto change) {
    return failure_of([&] { other.gemm.algorithms()->use(changed(table, change)); });
  };
  const std::string device = refusal([](AlgorithmTable& t, auto&) { t.device = "NVIDIA A100"; });
  expect_text(device, "run.algorithms: was measured on NVIDIA A100 with cuBLASLt 0, but this is ");
  const std::string version = refusal([](AlgorithmTable& t, auto&) { t.library = "cuBLASLt 9"; });
  expect_text(version, " with cuBLASLt 9, but this is ");
  expect_text(version, " with cuBLASLt 0; measure again");
  EXPECT_EQ(refusal([](auto&, auto&) {}), "none");
}

TEST_F(CublasLtAlgorithms, AnAlgorithmThatTheLibraryDoesNotAcceptIsAnError) {
  Library library({first, faster});
  const AlgorithmTable table = library.measured(product()).table;
  const auto refusal = [&](const std::vector<LibraryAlgorithm>& algorithms, auto change) {
    Library other(algorithms);
    other.gemm.algorithms()->use(changed(table, change));
    return failure_of([&] { other.gemm.run({}, product()); });
  };
  const std::string text = "does not accept its algorithm for the product bf16 6 x 8 x 10 NN";
  expect_text(refusal({first, faster}, [](auto&, Algorithm& a) { a[0] = 9; }), text);
  expect_text(refusal({first, faster}, [](auto&, Algorithm& a) { a[1] = 9; }), text);
  LibraryAlgorithm hungry = faster, aligned = faster;
  hungry.workspace = CublasLtGemm::scratch_bytes + 1;
  aligned.alignment = 128;
  const auto nothing = [](auto&, auto&) {};
  expect_text(refusal({first, hungry}, nothing), text);
  expect_text(refusal({first, aligned}, nothing), text);
  EXPECT_EQ(refusal({first, faster}, nothing), "none");
}

// The bits of a run depend on the table, so its digest is part of the arithmetic's name.
TEST_F(CublasLtAlgorithms, ATableIsPartOfTheArithmetic) {
  Library library({first, faster});
  const std::string without = library.gemm.arithmetic();
  AlgorithmTable table = library.measured(product()).table;
  EXPECT_EQ(library.gemm.arithmetic(), without);
  library.gemm.algorithms()->use(table);
  const std::string with = library.gemm.arithmetic();
  expect_text(with, without + " with algorithms ");
  table.products.begin()->second.ms /= 2;
  library.gemm.algorithms()->use(table);
  EXPECT_EQ(library.gemm.arithmetic(), with);
  table.products.clear();
  library.gemm.algorithms()->use(table);
  EXPECT_NE(library.gemm.arithmetic(), with);
}

}  // namespace

}  // namespace kzero::tensor
