// The library for attention of this build, if it has one, at the sizes of published models. All
// other tests would pass if kzero's kernels computed in its place.
#include <cstdio>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "unit/kernels/attention_library.hpp"

namespace kzero::kernels {

namespace {

template <class T>
class AttentionLibrary : public testing::Test {
 protected:
  void SetUp() override {
    if (attention_backends<T>().size() == 1) GTEST_SKIP() << "this build has no library for it";
  }
};
using SixteenBits = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(AttentionLibrary, SixteenBits, );

/// Two heads of keys and values, each with two query heads. The plain loop takes seconds at 1024
/// tokens, so one type has to suffice there.
template <class T>
AttentionShape grouped_heads(Index head_width) {
  return make_shape(1, dtype_of<T> == Dtype::bf16 ? 1024 : 256, 2, head_width, 2);
}

TYPED_TEST(AttentionLibrary, MatchesThePlainLoop) {
  check_attention<Library<Calls::one>, TypeParam>(grouped_heads<TypeParam>(64));
  check_forward<Library<Calls::one>, TypeParam>(grouped_heads<TypeParam>(128));
}

TYPED_TEST(AttentionLibrary, MultipliesScoresByAnotherFactor) {
  const SeenRows seen{.scale = 0.75F};
  check_forward<Library<Calls::one>, TypeParam>(make_shape(1, 256, 2, 64, 2), 1, seen);
  check_backward<Library<Calls::of_heads>, TypeParam>(make_shape(1, 256, 2, 64, 2), 1, seen);
}

TYPED_TEST(AttentionLibrary, MatchesThePlainLoopInCallsOfOneSequence) {
  check_backward<Library<Calls::of_sequences>, TypeParam>(make_shape(2, 256, 2, 64, 2));
}

TYPED_TEST(AttentionLibrary, MatchesThePlainLoopInCallsOfOneKeyHead) {
  check_backward<Library<Calls::of_heads>, TypeParam>(grouped_heads<TypeParam>(128));
}

// The log-sums of a call begin at a multiple of 4 bytes only. The plain loop takes tens of seconds
// for one type at 1023 tokens.
TYPED_TEST(AttentionLibrary, MatchesThePlainLoopAtAnOddLengthInCallsOfOneKeyHead) {
  const Index sequence = dtype_of<TypeParam> == Dtype::bf16 ? 1023 : 127;
  check_backward<Library<Calls::of_heads>, TypeParam>(make_shape(3, sequence, 3, 64, 3));
}

/// Whether the library is cuDNN 9.25 or newer. The device has to be Hopper or newer, too.
template <class T>
bool can_do_without_scores() {
  int major = 0, minor = 0;
  const std::string name = make_library<T>(problem_of<T>(grouped_heads<T>(64)))->name();
  return std::sscanf(name.c_str(), "cuDNN %d.%d", &major, &minor) == 2 &&
         std::pair(major, minor) >= std::pair(9, 25);
}

TYPED_TEST(AttentionLibrary, MatchesThePlainLoopWithoutStoredScores) {
  if (!can_do_without_scores<TypeParam>()) GTEST_SKIP() << "needs cuDNN 9.25";
  check_backward<Library<Calls::without_scores>, TypeParam>(make_shape(1, 256, 2, 128, 2));
}

template <class T>
void expect_same_bits_again(const AttentionShape& s, Calls calls) {
  const Guarded<T> qkv(numbers<T>(s.sequence * s.qkv_width(), 1, 2));
  const T *q = qkv.data(), *k = q + s.width(), *v = k + s.kv_heads * s.head_width;
  const AttentionProblem problem = cut(problem_of<T>(s), calls);
  EXPECT_EQ(run_library(problem, q, k, v), run_library(problem, q, k, v));
}

TYPED_TEST(AttentionLibrary, RepeatsItsBits) {
  expect_same_bits_again<TypeParam>(grouped_heads<TypeParam>(64), Calls::of_heads);
}

TYPED_TEST(AttentionLibrary, RepeatsItsBitsWithoutStoredScores) {
  if (!can_do_without_scores<TypeParam>()) GTEST_SKIP() << "needs cuDNN 9.25";
  expect_same_bits_again<TypeParam>(make_shape(1, 256, 2, 64, 2), Calls::without_scores);
}

TYPED_TEST(AttentionLibrary, ComputesWhereItIsNamedAndByDefault) {
  using T = TypeParam;
  const AttentionShape s = grouped_heads<T>(64);
  const auto library = make_library<T>(problem_of<T>(s)), own = Own::make<T>(problem_of<T>(s));
  ASSERT_NE(library->name(), own->name());
  const AttentionKind named = attention_backends<T>().front().name;
  for (const AttentionKind kind : {named, AttentionKind::automatic}) {
    const ChosenBackend<T> chosen(s, kind);
    EXPECT_EQ(chosen.attention.refusal, "");
    EXPECT_EQ(chosen.attention.backend->name(), library->name());
  }
  const ChosenBackend<T> chosen(s, AttentionKind::kzero);
  EXPECT_EQ(chosen.attention.refusal, "");
  EXPECT_EQ(chosen.attention.backend->name(), own->name());
}

/// "auto" leaves the problem to kzero's kernels for this reason, and the library's name is an
/// error.
template <class T>
void expect_left_to_own_kernels(const AttentionProblem& problem, const std::string& reason) {
  memory::Arenas measured;
  const auto chosen = choose_attention<T>(measured, problem, AttentionKind::automatic, 1);
  EXPECT_NE(chosen.refusal.find(reason), std::string::npos) << chosen.refusal;
  memory::Arenas again;
  try {
    static_cast<void>(choose_attention<T>(again, problem, attention_backends<T>().front().name, 1));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find(chosen.refusal), std::string::npos) << error.what();
  }
}

TYPED_TEST(AttentionLibrary, LeavesToOwnKernelsWhatItCannot) {
  using T = TypeParam;
  AttentionProblem documents = problem_of<T>(make_shape(1, 8, 2, 16));
  AttentionProblem dropout = documents;
  documents.documents = dropout.dropout = true;
  expect_left_to_own_kernels<T>(documents, "one document");
  expect_left_to_own_kernels<T>(dropout, "other dropout masks");
  const auto expect = [](const AttentionShape& s, const std::string& reason) {
    expect_left_to_own_kernels<T>(problem_of<T>(s), reason);
  };
  expect(make_shape(1, 8, 2, 12), "a multiple of 8, not 12");
  expect(make_shape(1, 8, 2, 264), "up to 256 wide");
  expect(make_shape(1, 1, 2, 16), "two tokens");
  expect(make_shape(1, 4194304, 1, 64), "at 4194304 tokens");
}

}  // namespace

}  // namespace kzero::kernels
