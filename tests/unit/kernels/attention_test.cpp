#include "base/error.hpp"
#include "support/error_text.hpp"
#include "unit/kernels/attention_cases.hpp"

namespace kzero::kernels {

namespace {

template <class T>
class Attention : public testing::Test {};
TYPED_TEST_SUITE(Attention, Elements, );

TYPED_TEST(Attention, MatchesThePlainLoop) {
  for (const Index sequence : {1, 5, 127, 128, 129, 300}) {
    for (const Index head_width : {1, 16, 33, 64})
      check_attention<Own, TypeParam>(make_shape(2, sequence, 3, head_width), 6);
  }
}

TYPED_TEST(Attention, QueryHeadsShareKeysAndValues) {
  for (const Index group : {2, 3, 5}) {
    for (const Index slots : {1, 4, 20})
      check_attention<Own, TypeParam>(make_shape(2, 97, 2, 6, group), slots);
  }
}

TYPED_TEST(Attention, NeedsNoMoreScratchThanOneSlot) {
  for (const Index slots : {1, 2, 4})  // six heads
    check_attention<Own, TypeParam>(make_shape(2, 129, 3, 16), slots);
}

TYPED_TEST(Attention, TilesMatchThePlainLoop) {
  for (const AttentionShape& shape : tiled_shapes())
    check_attention<Tiled<DeviceArithmetic>, TypeParam>(shape);
}

TYPED_TEST(Attention, StaysWithinDocuments) {
  for (const Index sequence : {1, 2, 64, 97, 129, 300}) {
    for (const Index head_width : {1, 33})
      check_documents<Own, TypeParam>(make_shape(2, sequence, 2, head_width), 2);
  }
  check_documents<Own, TypeParam>(make_shape(2, 97, 2, 6, 3), 4);
}

TYPED_TEST(Attention, TilesStayWithinDocuments) {
  for (const Index sequence : {1, 17, 65, 130})
    check_documents<Tiled<DeviceArithmetic>, TypeParam>(make_shape(2, sequence, 2, 20));
  check_documents<Tiled<DeviceArithmetic>, TypeParam>(make_shape(1, 63, 1, 136, 3));
}

TYPED_TEST(Attention, SkipsTilesOfOtherDocuments) {
  check_skipping<Own, TypeParam>(16);
  check_skipping<Tiled<DeviceArithmetic>, TypeParam>(16);
}

TYPED_TEST(Attention, SkipsTilesOutsideAWindow) {
  check_window_skipping<Own, TypeParam>(16);
  check_window_skipping<Tiled<DeviceArithmetic>, TypeParam>(16);
}

TYPED_TEST(Attention, DropsWeights) {
  for (const Index sequence : {1, 5, 64, 97, 129, 300}) {
    for (const Index head_width : {1, 33})
      check_dropout<Own, TypeParam>(make_shape(2, sequence, 2, head_width), 2);
  }
  check_dropout<Own, TypeParam>(make_shape(2, 97, 2, 6, 3), 4);
}

TYPED_TEST(Attention, TilesDropWeights) {
  for (const Index sequence : {1, 17, 65, 130})
    check_dropout<Tiled<DeviceArithmetic>, TypeParam>(make_shape(2, sequence, 2, 20));
  check_dropout<Tiled<DeviceArithmetic>, TypeParam>(make_shape(1, 63, 1, 136, 3));
}

TYPED_TEST(Attention, MultipliesScoresByAnotherFactor) {
  check_scales<Own, TypeParam>(make_shape(2, 131, 2, 33), 2);
  check_scales<Own, TypeParam>(make_shape(2, 97, 2, 6, 3), 4);
  check_scales<Tiled<DeviceArithmetic>, TypeParam>(make_shape(2, 130, 2, 20));
  check_scales<Tiled<DeviceArithmetic>, TypeParam>(make_shape(1, 63, 1, 136, 3));
}

TYPED_TEST(Attention, TakesOwnKernelsByNameWithTheScratchOfTheThreads) {
  const AttentionProblem problem = problem_of<TypeParam>(make_shape(2, 33, 2, 16));
  const auto kind = AttentionKind::kzero;
  memory::Arenas measured, expected;
  EXPECT_EQ(choose_attention<TypeParam>(measured, problem, kind, 3).backend, nullptr);
  const auto own = Own::make<TypeParam>(problem);
  expected.take<float>(memory::Category::workspace, own->scratch_bytes(3) / 4);
  EXPECT_EQ(measured.bytes(), expected.bytes());
  memory::Ledger ledger;
  memory::Arenas arenas(measured, ledger);
  const auto chosen = choose_attention<TypeParam>(arenas, problem, kind, 3);
  EXPECT_EQ(chosen.backend->name(), own->name());
  EXPECT_EQ(chosen.refusal, "");
  const bool has_choice = attention_backends<TypeParam>().size() > 1;
  EXPECT_EQ(chosen.arithmetic, has_choice ? "attention by kzero's kernels" : "");
}

TYPED_TEST(Attention, RefusesAnyOrderOfSumsWithoutALibrary) {
  const auto table = attention_backends<TypeParam>();
  if (table.front().name == AttentionKind::cudnn) GTEST_SKIP() << "this build has cuDNN";
  AttentionProblem problem = problem_of<TypeParam>(make_shape(1, 8, 2, 16));
  problem.fixed_order = false;
  memory::Arenas arenas;
  EXPECT_EQ(tests::error_of(ExitCode::usage,
                            [&] {
                              static_cast<void>(choose_attention<TypeParam>(
                                  arenas, problem, AttentionKind::automatic, 1));
                            }),
            "run.deterministic = false needs cuDNN's attention: this build has no cuDNN");
}

TYPED_TEST(Attention, NamesABackEndThatThisBuildLacks) {
  const auto table = attention_backends<TypeParam>();
  if (table.front().name == AttentionKind::cudnn) GTEST_SKIP() << "this build has cuDNN";
  const AttentionProblem problem = problem_of<TypeParam>(make_shape(1, 8, 2, 16));
  memory::Arenas arenas;
  EXPECT_EQ(tests::error_of(ExitCode::usage,
                            [&] {
                              static_cast<void>(choose_attention<TypeParam>(
                                  arenas, problem, AttentionKind::cudnn, 1));
                            }),
            "run.attention = \"cudnn\": this build has no cuDNN; \"auto\" takes kzero's kernels "
            "then");
}

}  // namespace

}  // namespace kzero::kernels
