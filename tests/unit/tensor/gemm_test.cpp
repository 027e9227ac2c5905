#include "tensor/gemm.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/products.hpp"

namespace kzero::tensor {

namespace {

using tests::check;
using tests::check_all;
using tests::Extra;
using tests::Guarded;
using tests::Problem;
using tests::Size;

/// Some of cuBLASLt's epilogues need the workspace.
template <class T>
class GemmBackends : public testing::Test {
 protected:
  std::unique_ptr<Gemm> make(GemmBackend backend) {
    auto gemm = make_gemm(backend);
    gemm->use_workspace(workspace_.data(), static_cast<Index>(workspace_.size()));
    return gemm;
  }

 private:
  static constexpr Index bias_bytes = 1 << 16;
  Kokkos::View<std::byte*, Memory> workspace_{
      "kzero::tests::workspace", static_cast<std::size_t>(gemm_workspace_bytes(bias_bytes))};
};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(GemmBackends, Elements, );

TYPED_TEST(GemmBackends, MatchThePlainLoop) {
  for (const Size size : {Size{1, 1, 1}, Size{7, 5, 3}, Size{31, 40, 16}, Size{129, 65, 33}}) {
    const Problem<TypeParam> problem(size);
    for (const GemmBackend backend : backends()) {
      SCOPED_TRACE(name_of(backend));
      check_all(*this->make(backend), problem);
    }
  }
}

// One block of the back ends that copy exact blocks, and a little more than one block in each
// direction.
TYPED_TEST(GemmBackends, MatchThePlainLoopAcrossBlocks) {
  using T = TypeParam;
  for (const Size size : {Size{512, 24, 512}, Size{24, 1024, 16}, Size{515, 1031, 13},
                          Size{37, 41, 521}, Size{103, 521, 521}}) {
    const Problem<T> problem(size);
    for (const GemmBackend backend : backends()) {
      SCOPED_TRACE(name_of(backend));
      const auto gemm = this->make(backend);
      check<T, T>(*gemm, problem, {Transpose::no, Transpose::no, Extra::bias_and_addend, 3});
      check<T, T>(*gemm, problem, {Transpose::no, Transpose::yes, Extra::none, 0});
      check<T, T>(*gemm, problem, {Transpose::yes, Transpose::no, Extra::accumulate, 3});
      check<T, float>(*gemm, problem, {Transpose::yes, Transpose::yes, Extra::accumulate, 1});
    }
  }
}

// Elements of A's columns are 4 KiB apart, which some back ends copy.
TYPED_TEST(GemmBackends, MatchThePlainLoopForColumnsThatShareCacheLines) {
  using T = TypeParam;
  const Problem<T> problem({1024, 37, 515});
  for (const GemmBackend backend : backends()) {
    SCOPED_TRACE(name_of(backend));
    const auto gemm = this->make(backend);
    check<T, T>(*gemm, problem, {Transpose::yes, Transpose::no, Extra::accumulate, 3});
    check<T, float>(*gemm, problem, {Transpose::yes, Transpose::no, Extra::none, 0});
  }
}

// C is far larger than A and B and exceeds one block of a library.
TYPED_TEST(GemmBackends, MatchThePlainLoopForWideWeightGradients) {
  using T = TypeParam;
  const Problem<T> problem({1201, 1103, 5});
  for (const GemmBackend backend : backends()) {
    SCOPED_TRACE(name_of(backend));
    check<T, T>(*this->make(backend), problem,
                {Transpose::yes, Transpose::no, Extra::accumulate, 0});
  }
}

TYPED_TEST(GemmBackends, GiveTheGradientOfTheTanhForm) {
  bool is_fused = false;
  for (const GemmBackend backend : backends()) {
    const auto gemm = this->make(backend);
    if (!gemm->fuses_gelu_gradient(dtype_of<TypeParam>, tests::gelu_count)) continue;
    is_fused = true;
    tests::check_gelu_form<TypeParam>(*gemm);
  }
  if (!is_fused) GTEST_SKIP() << "no backend of this build fuses it";
}

TYPED_TEST(GemmBackends, RepeatTheirBits) {
  using T = TypeParam;
  const Problem<T> problem({129, 65, 33});
  const Guarded<T> a(problem.a), b(problem.b), first(129 * 65), second(129 * 65);
  for (const GemmBackend backend : backends()) {
    const auto gemm = this->make(backend);
    for (const auto* c : {&first, &second}) {
      gemm->run(Execution(), {.m = 129,
                              .n = 65,
                              .k = 33,
                              .a = operand(a.matrix(129, 33)),
                              .b = operand(b.matrix(33, 65)),
                              .c = c->data(),
                              .c_stride = 65,
                              .in = dtype_of<T>,
                              .out = dtype_of<T>});
    }
    EXPECT_TRUE(tests::same_bits(first.host(), second.host())) << name_of(backend);
  }
}

TEST(Backends, AreThoseThatCanBeMade) {
  for (const GemmBackend backend : backends()) EXPECT_NE(make_gemm(backend), nullptr);
  EXPECT_NE(make_gemm(GemmBackend::automatic), nullptr);
  const GemmBackend other = on_host ? GemmBackend::cublaslt : GemmBackend::onednn;
  try {
    make_gemm(other);
    ADD_FAILURE() << name_of(other);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    const std::string text = error.what();
    EXPECT_NE(text.find(fmt::format("run.gemm: this build has no \"{}\"", name_of(other))),
              std::string::npos)
        << text;
    for (const GemmBackend backend : backends())
      EXPECT_NE(text.find(name_of(backend)), std::string::npos) << text;
  }
}

TEST(Operand, DescribesAContiguousView) {
  const Guarded<float> storage(12);
  const Operand plain = operand(storage.matrix(3, 4));
  EXPECT_EQ(plain.data, storage.data());
  EXPECT_EQ(plain.stride, 4);
  EXPECT_EQ(plain.transpose, Transpose::no);
  EXPECT_EQ(operand(storage.matrix(3, 4), Transpose::yes).transpose, Transpose::yes);
}

}  // namespace

}  // namespace kzero::tensor
