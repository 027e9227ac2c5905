#include "kernels/device/warp_rows.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "unit/kernels/tensor_cores/lanes.hpp"
#include "unit/kernels/tile_products.hpp"

namespace kzero::kernels {

namespace {

constexpr int down = 2, deep = 3, across = 4;

template <class T>
class WarpRows : public testing::Test {};
using SixteenBits = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(WarpRows, SixteenBits, );

// (A B^T rounded) C. The rounded product stays in registers.
TYPED_TEST(WarpRows, ASumBecomesTheFactorOfTheNextProduct) {
  using T = TypeParam;
  using Fragments = WarpFragments<T, LaneInstructions>;
  const OwnTile<T> a(16 * down, 16, 1), b(16 * deep, 16, 2), c(16 * deep, 16 * across, 3);
  OwnTile<float> first(16 * down, 16 * deep, 4), second(16 * down, 16 * across, 5);
  const auto write = [](auto& sums, int lane, const Tile<float>& to) {
    sums.for_pairs(lane, [&](const PairPlace& at, const float* x) {
      for (int e = 0; e < 2; ++e) to(at.row, at.column + e) = x[e];
    });
  };
  run_lanes(32, [&](int thread) {
    WarpSums<Fragments, down, deep> sums;
    add_transposed(sums, WarpFactor<Fragments, down, 1>(a.tile(), thread), b.tile(), thread);
    write(sums, thread, first.tile());
    WarpSums<Fragments, down, across> next;
    add(next, WarpFactor<Fragments, down, deep>(sums), c.tile(), thread);
    write(next, thread, second.tile());
  });
  for (int i = 0; i < 16 * down; ++i) {
    for (int j = 0; j < 16 * deep; ++j) {
      double value = 0, size = 0;
      for (int k = 0; k < 16; ++k) {
        value += a.at(i, k) * b.at(j, k);
        size += std::abs(a.at(i, k) * b.at(j, k));
      }
      ASSERT_NEAR(first.at(i, j), value, gamma(17) * size) << i << ' ' << j;
    }
    for (int j = 0; j < 16 * across; ++j) {
      double value = 0, size = 0;
      for (int k = 0; k < 16 * deep; ++k) {
        const double rounded = tests::as_double(static_cast<T>(first.tile()(i, k)));
        value += rounded * c.at(k, j);
        size += std::abs(rounded * c.at(k, j));
      }
      ASSERT_NEAR(second.at(i, j), value, gamma(16 * deep + 1) * size) << i << ' ' << j;
    }
  }
}

// The lanes of each row agree on its maximum and its sum. Every row has one leading lane.
TYPED_TEST(WarpRows, ReduceOverTheLanesOfARow) {
  using Fragments = WarpFragments<TypeParam, LaneInstructions>;
  using Sums = WarpSums<Fragments, down, across>;
  const OwnTile<TypeParam> a(16 * down, 16, 1), b(16 * across, 16, 2);
  OwnTile<float> sums_of_rows(16 * down, 16, 3);
  OwnTile<float> written(16 * down, 16 * across, 4);
  std::vector<int> leaders(16 * down);
  run_lanes(32, [&](int thread) {
    Sums sums;
    add_transposed(sums, WarpFactor<Fragments, down, 1>(a.tile(), thread), b.tile(), thread);
    float largest[Sums::rows], total[Sums::rows] = {};
    for (float& x : largest) x = -INFINITY;
    sums.for_pairs(thread, [&](const PairPlace& at, const float* x) {
      for (int e = 0; e < 2; ++e) {
        written.tile()(at.row, at.column + e) = x[e];
        largest[at.slot] = std::max(largest[at.slot], x[e]);
        total[at.slot] += x[e];
      }
    });
    Sums::for_rows(thread, [&](int slot, int row) {
      const float max = Fragments::largest_in_row(largest[slot]);
      const float sum = Fragments::sum_in_row(total[slot]);
      if (!Fragments::is_first_in_row(thread)) return;
      ++leaders[row];
      sums_of_rows.tile()(row, 0) = max;
      sums_of_rows.tile()(row, 1) = sum;
    });
  });
  for (int i = 0; i < 16 * down; ++i) {
    double max = -INFINITY, sum = 0, size = 0;
    for (int j = 0; j < 16 * across; ++j) {
      max = std::max(max, written.at(i, j));
      sum += written.at(i, j);
      size += std::abs(written.at(i, j));
    }
    EXPECT_EQ(sums_of_rows.at(i, 0), max) << i;
    EXPECT_NEAR(sums_of_rows.at(i, 1), sum, gamma(16 * across) * size) << i;
    EXPECT_EQ(leaders[i], 1) << i;
  }
}

}  // namespace

}  // namespace kzero::kernels
