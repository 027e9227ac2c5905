#include <gtest/gtest.h>

#include "base/error.hpp"
#include "deck/rules.hpp"

namespace kzero::deck {
namespace {

Run with_steps(const std::string& text) {
  Run run;
  run.profile_steps = text;
  return run;
}

TEST(ProfiledSteps, are_two_numbers_in_order) {
  const auto steps = profiled_steps(with_steps("3-12"));
  ASSERT_TRUE(steps);
  EXPECT_EQ(steps->first, 3);
  EXPECT_EQ(steps->last, 12);
  EXPECT_EQ(profiled_steps(with_steps("7-7"))->last, 7);
  for (const char* text : {"", "3", "-", "3-", "-3", "--3", "5-4", "3-4 ", " 3-4", "3--4", "3-4-5",
                           "a-b", "+1-2", "99999999999999999999-1"})
    EXPECT_FALSE(profiled_steps(with_steps(text))) << text;
}

std::string rule_broken_by(const std::string& profile, const std::string& steps) {
  Config config;
  config.train.steps = 20;
  config.run.profile = profile;
  config.run.profile_steps = steps;
  try {
    resolve(config, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ProfiledSteps, lie_within_the_training) {
  EXPECT_EQ(rule_broken_by("trace.json", "18-19"), "");
  EXPECT_EQ(rule_broken_by("trace.json", "18-20"),
            "configuration: run.profile_steps must end before train.steps = 20 (steps are numbered "
            "from 0), found \"18-20\"");
  EXPECT_EQ(rule_broken_by("trace.json", "2"),
            "configuration: run.profile_steps must be the first and the last step, as in "
            "\"10-12\", the last at least the first, found \"2\"");
  EXPECT_EQ(rule_broken_by("", "2-3"),
            "configuration: run.profile_steps = \"2-3\" needs run.profile");
}

}  // namespace
}  // namespace kzero::deck
