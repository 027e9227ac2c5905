#include "engine/verdict.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kzero::engine {
namespace {

using Ranks = std::vector<Index>;

/// A computation with two tensor ranks, each with a loss and two gradients.
Computed result(Index data_rank, std::vector<std::uint64_t> first,
                std::vector<std::uint64_t> second = {1, 2, 3}) {
  return {data_rank, {std::move(first), std::move(second)}};
}

Computed right(Index data_rank) { return result(data_rank, {1, 2, 3}); }

Verdict judged(const std::vector<Computed>& all) { return judge(all); }

TEST(Verdict, TwoRanksOutvoteAThird) {
  for (std::size_t wrong = 0; wrong < 3; ++wrong) {
    std::vector<Computed> all{right(4), right(7), right(9)};
    all[wrong].words[0][1] = 99;
    const Verdict verdict = judge(all);
    EXPECT_EQ(verdict.evidence, Evidence::outvoted);
    EXPECT_EQ(verdict.wrong, Ranks{all[wrong].data_rank});
    EXPECT_EQ(verdict.right.size(), 2U);
    EXPECT_EQ(std::ranges::count(verdict.right, all[wrong].data_rank), 0);
  }
}

TEST(Verdict, ARankWithTwoResultsIsWrong) {
  const Computed bad = result(1, {1, 2, 4});
  EXPECT_EQ(judged({bad, right(1)}).wrong, Ranks{1});
  const Verdict verdict = judged({right(0), bad, right(0), right(1)});
  EXPECT_EQ(verdict.evidence, Evidence::unstable);
  EXPECT_EQ(verdict.wrong, Ranks{1});
  EXPECT_EQ(judged({right(0), bad, result(0, {5, 6, 7}), right(1)}).wrong, (Ranks{0, 1}));
  EXPECT_EQ(judged({right(1), bad, result(1, {5, 6, 7})}).wrong, Ranks{1}) << "named once";
}

TEST(Verdict, IsNotGuessed) {
  const Computed bad = result(1, {1, 2, 4});
  const Verdict two = judged({right(0), bad, right(0), bad});
  EXPECT_EQ(two.evidence, Evidence::undecided);
  EXPECT_EQ(two.wrong, (Ranks{0, 1}));
  const Verdict three = judged({right(0), bad, result(2, {1, 2, 5})});
  EXPECT_EQ(three.evidence, Evidence::undecided);
  EXPECT_EQ(three.wrong, (Ranks{0, 1, 2}));
}

TEST(Verdict, NamesTheFirstWordsThatDiffer) {
  const Verdict one = judged({right(0), result(1, {1, 2, 3}, {1, 9, 9}), right(2)});
  EXPECT_EQ(one.place, 1);
  EXPECT_EQ(one.tensor_ranks, Ranks{1});
  const Verdict both = judged({right(0), right(1), result(2, {8, 8, 8}, {9, 9, 9})});
  EXPECT_EQ(both.place, 0);
  EXPECT_EQ(both.tensor_ranks, (Ranks{0, 1}));
  const Verdict later = judged({right(0), result(1, {1, 2, 9}, {1, 9, 3}), right(2)});
  EXPECT_EQ(later.place, 1);
  EXPECT_EQ(later.tensor_ranks, Ranks{1}) << "the difference of the other came later";
}

}  // namespace
}  // namespace kzero::engine
