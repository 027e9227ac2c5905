// The division of a library's backward into calls, and the scratch planned for it.
#include <gtest/gtest.h>

#include "kernels/attention/problem.hpp"

namespace kzero::kernels {

namespace {

AttentionProblem problem(Index batch, Index sequence, Index heads, Index kv_heads, Index width) {
  return {{batch, sequence, heads, kv_heads, width}, Dtype::bf16};
}

/// The bytes that cuDNN 9.27.0's plans for backward request. cuDNN reports them without a device.
struct Asked {
  AttentionProblem problem;
  Index ampere, hopper, blackwell;  // 0: no plan, or not queried
};

TEST(AttentionCalls, HaveRoomForWhatCudnnAsks) {
  const Asked all[] = {{problem(4, 1024, 12, 12, 64), 100860032, 100860160, 196608},
                       {problem(1, 1024, 32, 8, 128), 84017280, 84017408, 33685632},
                       {problem(2, 1023, 6, 2, 80), 29143376, 29143504, 7905872},
                       {problem(1, 17, 4, 2, 32), 41872, 74768, 17808},
                       {problem(2, 1000, 12, 12, 64), 0, 50427904, 0},
                       {problem(1, 2048, 8, 8, 256), 0, 67174656, 0},
                       {problem(1, 512, 8, 2, 256), 0, 8405248, 0},
                       {problem(3, 100, 4, 4, 64), 0, 398272, 0},
                       {problem(1, 2, 2, 1, 8), 0, 33296, 0},
                       {problem(1, 200, 5, 5, 200), 0, 659616, 0},
                       {problem(2, 384, 12, 4, 96), 0, 10653952, 0},
                       {problem(1, 128, 4, 4, 24), 0, 133376, 0},
                       {problem(16, 1024, 12, 12, 64), 0, 403439872, 0}};
  for (const Asked& asked : all) {
    const AttentionCalls calls(asked.problem);
    EXPECT_EQ(calls.sequences, asked.problem.shape.batch);
    EXPECT_EQ(calls.kv_heads, asked.problem.shape.kv_heads);
    for (const Index bytes : {asked.ampere, asked.hopper, asked.blackwell})
      EXPECT_GE(calls.plan_bytes, bytes) << asked.problem.shape.sequence;
    // Slightly more: twice dk and dv of the query heads, and rounding.
    const AttentionShape& s = asked.problem.shape;
    const Index of_heads = s.group() > 1 ? 4 * s.batch * s.heads * s.sequence * s.head_width : 0;
    EXPECT_LE(calls.plan_bytes, asked.hopper + of_heads + 8192) << s.sequence;
  }
}

TEST(AttentionCalls, AreOfWholeSequencesThenOfHeads) {
  const auto expect = [](const AttentionProblem& p, Index sequences, Index kv_heads) {
    const AttentionCalls calls(p);
    EXPECT_EQ(calls.sequences, sequences);
    EXPECT_EQ(calls.kv_heads, kv_heads);
    EXPECT_LE(calls.plan_bytes, p.most_scratch);
    EXPECT_GE(calls.scratch_bytes(), calls.plan_bytes + AttentionCalls::alignment);
  };
  expect(problem(32, 1024, 12, 12, 64), 32, 12);  // 768 MiB of score gradients
  expect(problem(64, 1024, 12, 12, 64), 32, 12);
  expect(problem(63, 1024, 12, 12, 64), 21, 12);  // a divisor
  expect(problem(1, 8192, 12, 12, 64), 1, 6);     // 128 MiB per head
  expect(problem(4, 8192, 32, 8, 128), 1, 1);
  expect(problem(1, 16384, 16, 16, 128), 1, 1);
  expect(problem(1, 32768, 16, 16, 128), 1, 0);  // 2 GiB per head
  AttentionProblem small = problem(6, 128, 4, 2, 64);
  small.most_scratch = AttentionCalls(problem(1, 128, 2, 1, 64)).plan_bytes;
  expect(small, 1, 1);
  --small.most_scratch;
  expect(small, 1, 0);
}

TEST(AttentionCalls, OfForwardAloneNeedLittle) {
  AttentionProblem p = problem(4, 32768, 8, 8, 128);
  p.has_backward = false;
  const AttentionCalls calls(p);
  EXPECT_EQ(calls.sequences, 4);
  EXPECT_EQ(calls.kv_heads, 8);
  EXPECT_GE(calls.plan_bytes, 256);  // for its plans on Hopper
  EXPECT_LT(calls.plan_bytes, Index{8} << 20);
}

}  // namespace

}  // namespace kzero::kernels
