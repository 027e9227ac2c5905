#include "probe/outliers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kzero::probe {
namespace {

/// Rounding of logarithms and their inverses: some units in the last place.
constexpr double rounding = 1e-12;

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

std::vector<std::size_t> places(const std::vector<double>& figures, Better better) {
  std::vector<std::size_t> found;
  for (const Outlier& odd : outliers(figures, better, 1.5)) found.push_back(odd.place);
  return found;
}

using Places = std::vector<std::size_t>;

TEST(Outliers, are_those_far_worse_than_the_median) {
  EXPECT_EQ(places({10, 11, 1, 10.5}, Better::higher), Places{2});
  EXPECT_EQ(places({10, 11, 1, 10.5}, Better::lower), Places{});
  EXPECT_EQ(places({20, 22, 190, 21}, Better::lower), Places{2});
  EXPECT_EQ(places({10, 10, 10, 10}, Better::higher), Places{});
  const auto odd = outliers(std::vector<double>{8, 8, 2, 8}, Better::higher, 1.5);
  ASSERT_EQ(odd.size(), 1U);
  EXPECT_NEAR(odd[0].factor, 4, rounding);
  EXPECT_NEAR(odd[0].typical, 8, rounding);
  EXPECT_NEAR(odd[0].figure, 2, rounding);
}

TEST(Outliers, several_are_found_while_most_are_not) {
  EXPECT_EQ(places({10, 1, 11, 10, 0.9, 10, 11}, Better::higher), (Places{1, 4}));
}

/// Below the factor nothing is odd, even if the other values are all equal. Above it, a place is
/// not odd if the others differ as much.
TEST(Outliers, are_not_named_for_small_or_common_differences) {
  EXPECT_EQ(places({10, 10, 10, 7}, Better::higher), Places{});
  EXPECT_EQ(places({10, 10, 10, 6.6}, Better::higher), Places{3});
  EXPECT_EQ(places({10, 20, 7, 16, 12, 6.5}, Better::higher), Places{});
}

/// Finds the slow one of four places although another is faster than the rest. A place's own figure
/// must not increase the spread that it is compared with. The figures were measured in such a
/// launch.
TEST(Outliers, do_not_excuse_themselves) {
  EXPECT_EQ(places({0.0328, 0.0172, 0.0308, 0.044}, Better::higher), Places{1});
}

TEST(Outliers, are_found_among_many) {
  std::vector<double> figures(1000);
  for (std::size_t i = 0; i < figures.size(); ++i)
    figures[i] = 10 + 0.001 * static_cast<double>(i % 100);
  figures[0] = 5, figures[999] = 6;
  EXPECT_EQ(places(figures, Better::higher), (Places{0, 999}));
}

TEST(Outliers, of_two_the_worse_one) {
  EXPECT_EQ(places({10, 9}, Better::higher), Places{});
  EXPECT_EQ(places({10, 5}, Better::higher), Places{1});
  EXPECT_EQ(places({10, 5}, Better::lower), Places{0});
  EXPECT_NEAR(outliers(std::vector<double>{10, 5}, Better::higher, 1.5)[0].factor, 2, rounding);
}

TEST(Outliers, leave_out_what_was_not_measured) {
  EXPECT_EQ(places({missing, 10, 1, 10, 10}, Better::higher), Places{2});
  EXPECT_EQ(places({missing, missing, 1}, Better::higher), Places{});
  EXPECT_EQ(places({0, 10, 10, 10}, Better::higher), Places{});
  EXPECT_EQ(places({}, Better::higher), Places{});
  EXPECT_TRUE(std::isnan(median_of(std::vector<double>{missing})));
  EXPECT_NEAR(median_of(std::vector<double>{4, missing, 1, 2, 9}), 3, rounding);
}

}  // namespace
}  // namespace kzero::probe
