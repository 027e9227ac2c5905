#include "zero/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "param/flat_layout.hpp"

namespace kzero::zero {
namespace {

bool overlap_in_time(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

bool overlap_in_memory(const Lifetime& a, const Lifetime& b) {
  return a.offset < b.offset + b.elements && b.offset < a.offset + a.elements;
}

/// The largest number of elements that exist at one time, which is a lower bound.
Index min_memory(const std::vector<Lifetime>& values) {
  Index largest = 0;
  for (const Lifetime& at : values) {
    Index sum = 0;
    for (const Lifetime& value : values) {
      if (value.first <= at.first && at.first <= value.last) sum += value.elements;
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

TEST(Lifetimes, NoTwoValuesShareAnElementAtATime) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> values;
    for (unsigned i = 0; i < 1 + random() % 30; ++i) {
      const Index first = random() % 20;
      const Index last = first + random() % 4, elements = 1 + random() % 1000;
      values.push_back({static_cast<Index>(i), first, last, elements, 0});
    }
    const Index total = assign_offsets(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_LE(values[i].offset + values[i].elements, total);
      // Aligned as in a buffer of all units, because GEMM libraries choose algorithms by alignment.
      EXPECT_EQ(values[i].offset % param::shard_alignment, 0);
      for (std::size_t j = i + 1; j < values.size(); ++j) {
        EXPECT_FALSE(overlap_in_time(values[i], values[j]) &&
                     overlap_in_memory(values[i], values[j]))
            << i << ' ' << j;
      }
    }
  }
}

// Equal blocks in a chain, with a unit five times as large at each end, as in a model.
TEST(Lifetimes, OfAChainOfBlocksNeedNoMoreThanLivesAtOnce) {
  for (const Index ahead : {0, 1, 2}) {
    for (const Index blocks : {2 * ahead + 1, 2 * ahead + 2, 4 * ahead + 20}) {
      std::vector<Lifetime> values{{0, 0, 0, 5120, 0}};
      for (Index i = 1; i <= blocks; ++i)
        values.push_back({i, std::max<Index>(0, i - ahead), i, 1024, 0});
      values.push_back({0, blocks + 1 - ahead, blocks + 1, 5120, 0});
      EXPECT_EQ(assign_offsets(values), min_memory(values)) << ahead << " ahead, " << blocks;
    }
  }
}

TEST(Lifetimes, AreRoundedToWholeLines) {
  std::vector<Lifetime> values{{0, 0, 1, 1, 0}, {1, 1, 2, 33, 0}};
  EXPECT_EQ(assign_offsets(values), 128);
  EXPECT_EQ(values[1].offset % 64, 0);
}

TEST(Lifetimes, OfNothingNeedNothing) {
  std::vector<Lifetime> none;
  EXPECT_EQ(assign_offsets(none), 0);
}

}  // namespace
}  // namespace kzero::zero
