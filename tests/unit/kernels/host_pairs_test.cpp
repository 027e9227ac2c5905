#include "kernels/host/pairs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "support/numbers.hpp"

namespace kzero::kernels {

namespace {

using tests::numbers;

/// Values of all kinds: ordinary values, ties, infinities, NaN, zeros of both signs.
std::vector<float> values(Index count, unsigned seed) {
  std::vector<float> all = numbers<float>(count, seed);
  const float infinity = std::numeric_limits<float>::infinity();
  const float special[] = {0.0F,        -0.0F,       infinity, -infinity, std::nanf(""),
                           1.00390625F, 1.01171875F, 3.4e38F,  -3.4e38F,  1e-30F};
  for (std::size_t i = 0; i < std::size(special); ++i) all[2 * i] = special[i];
  return all;
}

std::uint16_t bits(float value) { return static_cast<bf16>(value).bits; }

TEST(HostPairs, RowsAreRoundedToNeighbours) {
  constexpr Index count = 6 * host_lanes;
  const auto row = values(count, 1);
  std::vector<Bf16Pair> pairs(count / 2 + 1);
  round_row(row.data(), count, pairs.data());
  for (Index i = 0; i < count / 2; ++i) {
    EXPECT_EQ(pairs[i].first.bits, bits(row[2 * i])) << i;
    EXPECT_EQ(pairs[i].second.bits, bits(row[2 * i + 1])) << i;
  }
  EXPECT_EQ(pairs.back().first.bits, 0) << "wrote beyond the row";
}

TEST(HostPairs, TwoRowsAreRoundedToPairsOfAColumn) {
  constexpr Index count = 5 * host_lanes;
  const auto first = values(count, 1), second = values(count, 2);
  std::vector<Bf16Pair> both(count), alone(count);
  round_rows(first.data(), second.data(), count, both.data());
  round_rows(first.data(), nullptr, count, alone.data());
  for (Index i = 0; i < count; ++i) {
    EXPECT_EQ(both[i].first.bits, bits(first[i])) << i;
    EXPECT_EQ(both[i].second.bits, bits(second[i])) << i;
    EXPECT_EQ(alone[i].first.bits, bits(first[i])) << i;
    EXPECT_EQ(alone[i].second.bits, 0) << i;
  }
}

TEST(HostPairs, InterleavedRowsAreInTurn) {
  constexpr Index count = 6 * host_lanes;
  std::vector<Bf16Pair> first(count / 2), second(count / 2), pairs(count);
  const auto bf16_of = [](Index i) {
    bf16 value;
    value.bits = static_cast<std::uint16_t>(i);
    return value;
  };
  for (Index i = 0; i < count / 2; ++i) {
    first[i] = {bf16_of(2 * i), bf16_of(2 * i + 1)};
    second[i] = {bf16_of(1000 + 2 * i), bf16_of(1000 + 2 * i + 1)};
  }
  interleave(first.data(), second.data(), count, pairs.data());
  for (Index i = 0; i < count; ++i) {
    EXPECT_EQ(pairs[i].first.bits, i);
    EXPECT_EQ(pairs[i].second.bits, 1000 + i);
  }
}

}  // namespace

}  // namespace kzero::kernels
