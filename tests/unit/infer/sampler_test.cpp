#include "infer/sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"

namespace kzero::infer {
namespace {

/// Logarithms of the probabilities 0.4, 0.3, 0.15, 0.1, 0.05, in another order.
const std::vector<float> logits{std::log(0.1F), std::log(0.4F), std::log(0.05F), std::log(0.3F),
                                std::log(0.15F)};

std::map<Token, int> drawn(const Sampling& sampling, int count = 4000) {
  Sampler sampler(sampling);
  std::map<Token, int> times;
  for (int i = 0; i < count; ++i) ++times[sampler.choose(logits, {i % 7, i})];
  return times;
}

std::set<Token> kept(const Sampling& sampling) {
  std::set<Token> tokens;
  for (const auto& [token, times] : drawn(sampling)) tokens.insert(token);
  return tokens;
}

using Tokens = std::set<Token>;

TEST(Sampler, DrawsByProbability) {
  // 4000 draws. A count is within five standard deviations, at most 5 sqrt(1000) = 158.
  const auto times = drawn({});
  EXPECT_NEAR(times.at(1), 1600, 158);
  EXPECT_NEAR(times.at(3), 1200, 158);
  EXPECT_NEAR(times.at(2), 200, 158);
  const auto sharper = drawn({.temperature = 0.5});  // 0.16, 0.09, .. of 0.285
  EXPECT_NEAR(sharper.at(1), 4000 * 0.16 / 0.285, 158);
}

TEST(Sampler, KeepsTheLargestK) {
  EXPECT_EQ(kept({.top_k = 1}), Tokens{1});
  EXPECT_EQ(kept({.top_k = 3}), (Tokens{1, 3, 4}));
  EXPECT_EQ(kept({.top_k = 5}).size(), 5);
  EXPECT_EQ(kept({.top_k = 50}).size(), 5);
}

TEST(Sampler, KeepsTheFewestThatHaveP) {
  EXPECT_EQ(kept({.top_p = 1e-9}), Tokens{1});
  EXPECT_EQ(kept({.top_p = 0.39}), Tokens{1});
  EXPECT_EQ(kept({.top_p = 0.41}), (Tokens{1, 3}));
  EXPECT_EQ(kept({.top_p = 0.86}), (Tokens{0, 1, 3, 4}));
  // Relative to the tokens left by top-k: 0.4 of 0.7 is 0.57.
  EXPECT_EQ(kept({.top_k = 2, .top_p = 0.55}), Tokens{1});
  EXPECT_EQ(kept({.top_k = 2, .top_p = 0.59}), (Tokens{1, 3}));
}

TEST(Sampler, KeepsWhatIsProbableBesideTheMostProbable) {
  EXPECT_EQ(kept({.min_p = 1}), Tokens{1});
  EXPECT_EQ(kept({.min_p = 0.7}), (Tokens{1, 3}));
  EXPECT_EQ(kept({.min_p = 0.2}), (Tokens{0, 1, 3, 4}));
  // At a temperature of 2 the ratios are square roots: sqrt(0.75) = 0.87, sqrt(0.375) = 0.61.
  EXPECT_EQ(kept({.temperature = 2, .min_p = 0.7}), (Tokens{1, 3}));
  EXPECT_EQ(kept({.temperature = 2, .min_p = 0.6}), (Tokens{1, 3, 4}));
}

TEST(Sampler, TakesTheLowerIdOfEqualLogits) {
  const std::vector<float> equal{1, 3, 3, 2, 3};
  EXPECT_EQ(Sampler({.temperature = 0}).choose(equal, {}), 1);
  Sampler two({.top_k = 2}), part({.top_p = 0.5});
  for (Index i = 0; i < 200; ++i) {
    EXPECT_LE(two.choose(equal, {0, i}), 2);
    EXPECT_LE(part.choose(equal, {0, i}), 2);
  }
}

TEST(Sampler, DrawsByPlaceAndSeedAlone) {
  Sampler sampler({}), again({}), other({.seed = 2});
  int equal = 0;
  for (Index i = 99; i >= 0; --i) (void)again.choose(logits, {0, i});
  for (Index i = 0; i < 100; ++i) {
    const Token token = sampler.choose(logits, {3, i});
    EXPECT_EQ(again.choose(logits, {3, i}), token);
    equal += other.choose(logits, {3, i}) == token;
  }
  EXPECT_LT(equal, 60);
}

TEST(Sampler, RefusesLogitsThatAreNoNumbers) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const double temperature : {0.0, 1.0})
      EXPECT_THROW(Sampler({.temperature = temperature}).choose(std::vector{1.0F, bad}, {}), Error);
  }
  // A masked token is never drawn.
  Sampler sampler({});
  const std::vector<float> masked{-std::numeric_limits<float>::infinity(), 0, 0};
  for (Index i = 0; i < 100; ++i) EXPECT_NE(sampler.choose(masked, {0, i}), 0);
}

}  // namespace
}  // namespace kzero::infer
