// The calls that CublasLtGemm makes, against the double.
#include "doubles/cublaslt.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/linear.hpp"
#include "support/products.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

namespace {

using tests::check;
using tests::check_all;
using tests::cublaslt;
using tests::Extra;
using tests::Guarded;
using tests::numbers;
using tests::Problem;
using tests::Size;

/// The library with a workspace that begins nowhere in particular.
struct WithWorkspace {
  static constexpr Index bytes = CublasLtGemm::workspace_bytes(1024);
  Guarded<std::byte> workspace{bytes};
  CublasLtGemm gemm;

  WithWorkspace() { gemm.use_workspace(workspace.data(), bytes); }
};

/// Ranges that begin `offset` elements after an address that is a multiple of 64.
template <class T>
struct Ranges {
  static constexpr Index max_offset = 64;
  Guarded<T> a, b, c, vector, addend;
  Index offset;

  Ranges(const Size& s, Index shift)
      : a(numbers<T>(s.m * s.k + max_offset, 1)),
        b(numbers<T>(s.k * s.n + max_offset, 2)),
        c(numbers<T>(s.m * s.n + max_offset, 3)),
        vector(numbers<T>(s.m * s.n + max_offset, 4)),
        addend(numbers<T>(s.m * s.n + max_offset, 5)),
        offset(shift) {}

  GemmProblem product(const Size& s) const {
    return {.m = s.m,
            .n = s.n,
            .k = s.k,
            .a = {a.data() + offset, s.k},
            .b = {b.data() + offset, s.n},
            .c = c.data() + offset,
            .c_stride = s.n,
            .in = dtype_of<T>,
            .out = dtype_of<T>};
  }
};

template <class T>
class CublasLt : public testing::Test {
 protected:
  ~CublasLt() override { EXPECT_EQ(cublaslt().alive, 0) << "objects of the library left over"; }
};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(CublasLt, Elements, );

TYPED_TEST(CublasLt, MatchesThePlainLoop) {
  WithWorkspace library;
  for (const Size size :
       {Size{1, 1, 1}, Size{7, 5, 3}, Size{31, 40, 16}, Size{61, 37, 67}, Size{32, 64, 128}}) {
    check_all(library.gemm, Problem<TypeParam>(size));
  }
}

TYPED_TEST(CublasLt, MatchesThePlainLoopWithoutAWorkspace) {
  CublasLtGemm gemm;
  check_all(gemm, Problem<TypeParam>({7, 8, 3}));
  EXPECT_EQ(cublaslt().request.workspace, 0U);
}

TYPED_TEST(CublasLt, GivesTheGradientOfTheTanhForm) {
  WithWorkspace library;
  if (dtype_of<TypeParam> == Dtype::fp32) {
    EXPECT_FALSE(library.gemm.fuses_gelu_gradient(Dtype::fp32, tests::gelu_count));
    return;
  }
  ASSERT_TRUE(library.gemm.fuses_gelu_gradient(dtype_of<TypeParam>, tests::gelu_count));
  EXPECT_FALSE(library.gemm.fuses_gelu_gradient(dtype_of<TypeParam>, tests::gelu_count + 4));
  tests::check_gelu_form<TypeParam>(library.gemm);
}

TYPED_TEST(CublasLt, MakesNothingForAShapeThatItHasSeen) {
  using T = TypeParam;
  WithWorkspace library;
  const Size size{6, 8, 10};
  const Ranges<T> first(size, 0), second(size, 0);
  const auto run_all = [&](const Ranges<T>& ranges) {
    for (const Extra extra : {Extra::none, Extra::bias, Extra::addend, Extra::accumulate}) {
      GemmProblem p = ranges.product(size);
      if (extra == Extra::bias) p.bias = ranges.vector.data();
      if (extra == Extra::addend) p.addend = ranges.addend.data();
      if (extra == Extra::accumulate) p.accumulate = Accumulate::yes;
      library.gemm.run({}, p);
    }
    if (!library.gemm.fuses_gelu_gradient(dtype_of<T>, size.n)) return;
    GemmProblem p = ranges.product(size);
    p.gelu_input = ranges.vector.data();
    library.gemm.run({}, p);
  };
  run_all(first);
  const Index made = cublaslt().made, heuristics = cublaslt().heuristics;
  const Index products = cublaslt().products;
  run_all(second);
  run_all(first);
  EXPECT_GT(cublaslt().products, products);
  EXPECT_EQ(cublaslt().made, made);
  EXPECT_EQ(cublaslt().heuristics, heuristics);
}

// The same shape at other addresses is the same request, unless the alignment below 64 differs.
TYPED_TEST(CublasLt, AsksByShapeAndAlignmentAlone) {
  using T = TypeParam;
  const Size size{6, 8, 10};
  const WithWorkspace with;
  for (const Extra extra : {Extra::none, Extra::bias, Extra::addend, Extra::gelu_gradient}) {
    if (extra == Extra::gelu_gradient && dtype_of<T> == Dtype::fp32) continue;
    for (Index offset = 0; offset < Ranges<T>::max_offset; ++offset) {
      tests::AlgorithmRequest requests[2];
      for (auto& request : requests) {
        CublasLtGemm gemm;
        gemm.use_workspace(with.workspace.data(), WithWorkspace::bytes);
        const Ranges<T> ranges(size, offset);
        GemmProblem p = ranges.product(size);
        if (extra == Extra::bias) p.bias = ranges.vector.data() + offset;
        if (extra == Extra::addend) p.addend = ranges.addend.data() + offset;
        if (extra == Extra::gelu_gradient) p.gelu_input = ranges.vector.data();
        gemm.run({}, p);
        request = cublaslt().request;
        const Index bytes = offset * static_cast<Index>(sizeof(T)) % 64;
        const auto expected = static_cast<std::uint32_t>(bytes == 0 ? 64 : bytes & -bytes);
        EXPECT_EQ(request.alignment_a, expected);
        EXPECT_EQ(request.alignment_b, expected);
        EXPECT_EQ(request.alignment_c, expected);
        EXPECT_EQ(request.alignment_d, expected);
      }
      EXPECT_EQ(requests[0], requests[1]) << offset;
    }
  }
}

TYPED_TEST(CublasLt, HasAnAlgorithmForEachAlignment) {
  using T = TypeParam;
  WithWorkspace library;
  const Size size{6, 8, 10};
  const Ranges<T> aligned(size, 0), shifted(size, 1);
  library.gemm.run({}, aligned.product(size));
  const Index heuristics = cublaslt().heuristics;
  library.gemm.run({}, shifted.product(size));
  EXPECT_EQ(cublaslt().heuristics, heuristics + 1);
}

/// The columns of a vector that begins `offset` elements after an aligned address.
template <class T>
struct ShiftedVector {
  std::vector<T> before;
  Guarded<T> memory;
  Index offset;

  ShiftedVector(const std::vector<T>& values, Index shift)
      : before(static_cast<std::size_t>(shift), T(7.0F)),
        memory(shift + static_cast<Index>(values.size())),
        offset(shift) {
    std::vector<T> all = before;
    all.insert(all.end(), values.begin(), values.end());
    memory.set(all);
  }

  T* data() const { return memory.data() + offset; }
  std::vector<T> host() const {
    const std::vector<T> all = memory.host();
    EXPECT_TRUE(tests::same_bits(std::vector<T>(all.begin(), all.begin() + offset), before));
    return {all.begin() + offset, all.end()};
  }
};

// The double refuses a bias that is not aligned to 16 bytes.
TYPED_TEST(CublasLt, ReadsABiasAtAnyAddressByTheSameAlgorithm) {
  using T = TypeParam;
  WithWorkspace library;
  const Size size{6, 8, 10};
  const Ranges<T> ranges(size, 0);
  const auto run = [&](Index offset) {
    const ShiftedVector<T> bias(numbers<T>(size.n, 6), offset);
    GemmProblem p = ranges.product(size);
    p.bias = bias.data();
    library.gemm.run({}, p);
    EXPECT_TRUE(tests::same_bits(bias.host(), numbers<T>(size.n, 6)));
    return ranges.c.host();
  };
  const std::vector<T> expected = run(0);
  const Index heuristics = cublaslt().heuristics;
  for (Index offset = 1; offset <= 16; ++offset)
    EXPECT_TRUE(tests::same_bits(run(offset), expected)) << offset;
  EXPECT_EQ(cublaslt().heuristics, heuristics);
}

TYPED_TEST(CublasLt, KeepsPartsOfSumsInFp32AndUsesTheWholeWorkspace) {
  WithWorkspace library;
  check<TypeParam, TypeParam>(library.gemm, Problem<TypeParam>({7, 5, 3}), {});
  EXPECT_EQ(cublaslt().request.reduction_schemes, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  EXPECT_EQ(cublaslt().request.workspace, std::uint64_t{32} << 20);
}

TYPED_TEST(CublasLt, ChoosesAgainForAnotherWorkspace) {
  WithWorkspace library;
  const Problem<TypeParam> problem({7, 5, 3});
  check<TypeParam, TypeParam>(library.gemm, problem, {});
  library.gemm.use_workspace(library.workspace.data(), 1000);
  check<TypeParam, TypeParam>(library.gemm, problem, {});
  EXPECT_EQ(cublaslt().request.workspace, 1000U - 256U);
}

std::string failure_of(Gemm& gemm, const GemmProblem& p) {
  try {
    gemm.run({}, p);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::other);
    return error.what();
  }
  return "none";
}

TYPED_TEST(CublasLt, NamesWhatFailed) {
  using T = TypeParam;
  WithWorkspace library;
  const Size size{6, 8, 10};
  const Ranges<T> ranges(size, 0);
  GemmProblem p = ranges.product(size);
  cublaslt().next_product_status = CUBLAS_STATUS_EXECUTION_FAILED;
  const std::string failed = failure_of(library.gemm, p);
  const char* const text = "cublasLtMatmul failed with CUBLAS_STATUS_EXECUTION_FAILED";
  EXPECT_NE(failed.find(text), std::string::npos) << failed;
  EXPECT_NE(failed.find("6 x 8 x 10 in "), std::string::npos) << failed;

  p.accumulate = Accumulate::yes;
  cublaslt().has_algorithms = false;
  const std::string none = failure_of(library.gemm, p);
  cublaslt().has_algorithms = true;
  EXPECT_NE(none.find("no algorithm for a GEMM of 6 x 8 x 10 in "), std::string::npos) << none;
  EXPECT_NE(none.find("accumulated"), std::string::npos) << none;
}

TYPED_TEST(CublasLt, RefusesWhatOneCallCannotDo) {
  using T = TypeParam;
  WithWorkspace library;
  const Size size{6, 8, 10};
  const Ranges<T> ranges(size, 0);
  const auto expect_refusal = [&](const GemmProblem& p, const std::string& text) {
    const std::string failure = failure_of(library.gemm, p);
    EXPECT_NE(failure.find("internal error: " + text), std::string::npos) << failure;
  };
  GemmProblem p = ranges.product(size);
  p.addend = ranges.addend.data(), p.accumulate = Accumulate::yes;
  expect_refusal(p, "two matrices to add");
  p = ranges.product(size);
  p.gelu_input = ranges.vector.data(), p.bias = ranges.vector.data();
  expect_refusal(p, "GELU's gradient of a sum");
  p.bias = nullptr;
  GemmProblem transposed = p;
  transposed.a = {p.a.data, size.m, Transpose::yes};
  expect_refusal(transposed, "GELU's gradient with a transposed A");
  if (dtype_of<T> == Dtype::fp32) {
    expect_refusal(p, "GELU's gradient is not fused");
  } else {
    p.out = Dtype::fp32;
    expect_refusal(p, "operands of two types");
  }
  p.gelu_input = ranges.vector.data() + 1;
  expect_refusal(p, "GELU's input is not aligned to 16 bytes");
  GemmProblem with_bias = ranges.product(size);
  with_bias.bias = ranges.vector.data() + 1;
  library.gemm.use_workspace(library.workspace.data(), CublasLtGemm::workspace_bytes(1));
  expect_refusal(with_bias, "1 bytes of workspace for a bias of");
}

/// The same products without the fusion.
class InTwoSteps : public Gemm {
 public:
  void run(const Execution& exec, const GemmProblem& product) override {
    inner_.run(exec, product);
  }
  std::string arithmetic() const override { return inner_.arithmetic(); }

 private:
  CublasLtGemm inner_;
};

/// dhidden and, after it, the gradient of its bias, fused or in two steps.
template <class T>
std::vector<T> feed_forward_gradient(Gemm& gemm, Index width, tensor::Accumulate accumulate) {
  deck::Model deck;
  deck.layers = deck.heads = 1;
  deck.hidden = 8;
  deck.sequence = 6;
  deck.feed_forward = width;
  const model::TransformerShape shape(deck);
  model::Declaration block(shape, deck, Index{0});
  const model::Linear<T> up(block, deck::Product::up), down(block, deck::Product::down);
  memory::Arenas measured;
  static_cast<void>(model::Context<T>(measured, nullptr, shape, deck, {1}, {.sum_columns = width}));
  memory::Ledger ledger;
  memory::Arenas arenas(measured, ledger);
  const model::Context<T> context(arenas, &gemm, shape, deck, {1}, {.sum_columns = width});
  const Guarded<T> dy(numbers<T>(6 * 8, 1)), unit(numbers<T>(block.own.elements(), 2));
  const Guarded<T> hidden(numbers<T>(6 * width, 3, 4)), dhidden(6 * width);
  const Guarded<T> gradients(numbers<T>(block.own.elements(), 4));
  down.backward_gelu(context, {unit.data()}, dy.matrix(6, 8), hidden.matrix(6, width),
                     dhidden.matrix(6, width));
  up.backward_bias(context, dhidden.matrix(6, width), {{gradients.data()}, accumulate});
  std::vector<T> all = dhidden.host();
  for (const T sum : from_device(up.in_unit(gradients.data()).bias)) all.push_back(sum);
  return all;
}

// Widths that are and are not multiples of eight: the two ways differ by a rounding of the product.
// Of a bias' gradient that is a rounding of each of its six terms, fused or not.
TYPED_TEST(CublasLt, FusesTheGradientInTheModelWhereItCan) {
  using T = TypeParam;
  CublasLtGemm fused;
  InTwoSteps plain;
  for (const Index width : {24, 20}) {
    for (const auto accumulate : {tensor::Accumulate::no, tensor::Accumulate::yes}) {
      const auto one = feed_forward_gradient<T>(fused, width, accumulate);
      const auto two = feed_forward_gradient<T>(plain, width, accumulate);
      const bool same = tests::same_bits(one, two);
      EXPECT_EQ(same, !fused.fuses_gelu_gradient(dtype_of<T>, width)) << width;
      std::vector<double> magnitudes(width);
      for (Index i = 0; i < 6 * width; ++i)
        magnitudes[i % width] += std::abs(tests::as_double(two[i]));
      for (Index i = 0; i < static_cast<Index>(one.size()); ++i) {
        const double a = tests::as_double(one[i]), b = tests::as_double(two[i]);
        const bool is_sum = i >= 6 * width;
        const double size = std::abs(b) + (is_sum ? magnitudes[i - 6 * width] : 0);
        EXPECT_NEAR(a, b, 3 * tests::round_off<T> * size + 1e-6) << width << ' ' << i;
      }
    }
  }
}

}  // namespace

}  // namespace kzero::tensor
