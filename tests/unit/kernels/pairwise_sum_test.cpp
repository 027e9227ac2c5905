#include "kernels/pairwise_sum.hpp"

#include <gtest/gtest.h>

#include "support/tree_sum.hpp"
#include "unit/kernels/cases.hpp"

namespace kzero::kernels {
namespace {

template <class T>
class PairwiseSum : public testing::Test {};
TYPED_TEST_SUITE(PairwiseSum, Elements, );

TEST(OpenSums, AreABlockThatIsNotFullAndSubtreesOfDifferentSizes) {
  EXPECT_EQ(open_sums(0, 1), 0);
  EXPECT_EQ(open_sums(1, 1), 1);
  EXPECT_EQ(open_sums(7, 1), 3);
  EXPECT_EQ(open_sums(8, 1), 1);
  EXPECT_EQ(open_sums(7, 4), 2);
  EXPECT_EQ(open_sums(3, 4), 1);
  EXPECT_EQ(open_sums(28, 4), 3);
}

/// Adds terms in rounds of `ranks` terms. The last round may have fewer terms.
template <class T>
std::vector<T> in_rounds(const std::vector<std::vector<T>>& terms, int ranks, int own, Index block,
                         Index count) {
  const auto all = static_cast<int>(terms.size());
  int max_open = 0;
  for (int first = ranks; first < all; first += ranks)
    max_open = std::max(max_open, open_sums(first, block));
  const Index stride = count + 3;
  const Guarded<float> oldest(count), others(std::max(1, max_open - 1) * stride);
  const OpenSums open{oldest.data(), others.data(), stride};
  const Guarded<T> out(count);
  for (int first = 0; first < all; first += ranks) {
    const int present = std::min(ranks, all - first);
    std::vector<T> sent(static_cast<std::size_t>(ranks * stride));
    for (int r = 0; r < present; ++r)
      std::copy_n(terms[first + r].begin(), count, sent.begin() + r * stride);
    const Guarded<T> received(sent), mine(own < present ? terms[first + own] : terms[first]);
    add_terms<T, T>(Execution(), {received.data(), stride, mine.data(), present, own},
                    {first, block, first + ranks >= all}, open, out.vector());
    Kokkos::fence();
  }
  return out.host();
}

TYPED_TEST(PairwiseSum, IsTheTreeOverBlocksBitForBitInAnyRounds) {
  using T = TypeParam;
  for (const int all : {1, 2, 5, 8, 13}) {
    for (const Index count : {1, 5, 300}) {
      std::vector<std::vector<T>> terms;
      for (int t = 0; t < all; ++t) terms.push_back(numbers<T>(count, t, t % 3 == 0 ? 100 : 0.01));
      for (const Index block : {1, 2, 3, 16}) {
        std::vector<T> expected;
        for (const float sum : tests::tree_sum(all, block, [&](Index i) { return terms[i]; }))
          expected.push_back(static_cast<T>(sum));
        for (const int ranks : {1, 2, 3, all})
          EXPECT_TRUE(tests::same_bits(in_rounds(terms, ranks, ranks / 2, block, count), expected))
              << all << " terms, " << ranks << " a round, blocks of " << block;
      }
    }
  }
}

}  // namespace
}  // namespace kzero::kernels
