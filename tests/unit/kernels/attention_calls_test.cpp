// The division of a library's backward into calls, and the scratch planned for it.
#include <gtest/gtest.h>

#include "unit/kernels/cudnn_requests.hpp"

namespace kzero::kernels {

namespace {

TEST(AttentionCalls, HaveRoomForWhatCudnnRequests) {
  for (const Requested& r : cudnn_requests) {
    const AttentionCalls calls(r.problem);
    const AttentionShape& s = r.problem.shape;
    EXPECT_EQ(calls.sequences, s.batch);
    EXPECT_EQ(calls.kv_heads, s.kv_heads);
    EXPECT_EQ(calls.stores_scores, s.sequence < 20000);
    EXPECT_GE(calls.plan_bytes, r.first_on_hopper) << s.sequence;
    EXPECT_GE(calls.plan_bytes, r.blackwell) << s.sequence;
    EXPECT_EQ(calls.plan_bytes >= r.ampere, calls.stores_scores) << s.sequence;
    // Slightly more: for Blackwell's dk and dv of the query heads, and rounding.
    const bool is_more = s.group() > 1 && calls.stores_scores;
    const Index of_heads = is_more ? 4 * s.batch * s.heads * s.sequence * s.head_width : 0;
    EXPECT_LE(calls.plan_bytes, r.first_on_hopper + of_heads + 8192) << s.sequence;
  }
}

struct Divided {
  Index sequences, kv_heads;
  bool stores_scores = true;
};

void expect_calls(const AttentionProblem& p, const Divided& expected) {
  const AttentionCalls calls(p);
  EXPECT_EQ(calls.sequences, expected.sequences);
  EXPECT_EQ(calls.kv_heads, expected.kv_heads);
  EXPECT_EQ(calls.stores_scores, expected.stores_scores);
  EXPECT_LE(calls.plan_bytes, p.max_scratch);
  EXPECT_GE(calls.scratch_bytes(), calls.plan_bytes + AttentionCalls::alignment);
}

TEST(AttentionCalls, AreOfWholeSequencesThenOfHeads) {
  expect_calls(problem(32, 1024, 12, 12, 64), {32, 12});  // 768 MiB of score gradients
  expect_calls(problem(64, 1024, 12, 12, 64), {32, 12});
  expect_calls(problem(63, 1024, 12, 12, 64), {21, 12});  // a divisor
  expect_calls(problem(1, 8192, 12, 12, 64), {1, 6});     // 128 MiB per head
  expect_calls(problem(4, 8192, 32, 8, 128), {1, 1});
  expect_calls(problem(1, 16384, 16, 16, 128), {1, 1});
}

TEST(AttentionCalls, StoreNoScoresIfThoseOfOneKeyHeadAreTooMany) {
  expect_calls(problem(1, 32768, 16, 16, 128), {1, 16, false});  // 2 GiB of scores per head
  expect_calls(problem(4, 16384, 32, 8, 128), {1, 8, false});    // 2 GiB per key head
  AttentionProblem small = problem(6, 128, 4, 2, 64);
  small.max_scratch = AttentionCalls(problem(1, 128, 2, 1, 64)).plan_bytes;
  expect_calls(small, {1, 1});
  --small.max_scratch;
  expect_calls(small, {1, 1, false});
  small.max_scratch = AttentionCalls(small).plan_bytes - 1;
  expect_calls(small, {1, 0, false});
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
