#include "metrics/expert_load.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kzero::metrics {
namespace {

TEST(ExpertLoad, IsOneForEqualShares) {
  const std::vector<std::uint64_t> choices{7, 7, 7, 7, 7, 7};
  const ExpertLoad load = expert_load(choices, 2);
  EXPECT_EQ(load.largest, (std::vector{1.0, 1.0}));
  ASSERT_EQ(load.entropy.size(), 2u);
  EXPECT_NEAR(load.entropy[0], 1, 1e-15);
}

TEST(ExpertLoad, ShowsTheBusiestExpertOfEachBlock) {
  const std::vector<std::uint64_t> choices{6, 0, 0, 1, 2, 3};
  const ExpertLoad load = expert_load(choices, 2);
  EXPECT_EQ(load.largest, (std::vector{3.0, 1.5}));
  EXPECT_EQ(load.entropy[0], 0);
  const double entropy = (std::log(6.0) + 2 * std::log(3.0) + 3 * std::log(2.0)) / 6;
  EXPECT_NEAR(load.entropy[1], entropy / std::log(3.0), 1e-15);
}

TEST(ExpertLoad, IsEmptyWithoutExperts) {
  EXPECT_TRUE(expert_load({}, 3).largest.empty());
  EXPECT_EQ(expert_load(std::vector<std::uint64_t>{0, 0}, 1).largest, std::vector{0.0});
}

}  // namespace
}  // namespace kzero::metrics
