#include "base/problem_list.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kzero {
namespace {

TEST(ProblemList, KeepsTheFirstProblemOfEachSubjectInOrder) {
  ProblemList list;
  EXPECT_TRUE(list.empty());
  list.throw_if_any(ExitCode::files);
  EXPECT_TRUE(list.collect("fine", [] {}));
  EXPECT_FALSE(list.collect("b", [] { fail(ExitCode::usage, "b: {}", 1); }));
  list.add("a", "a: 2");
  list.add("b", "b: 3");
  EXPECT_EQ(list.text(), "b: 1\na: 2");
  try {
    list.throw_if_any(ExitCode::files);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::files);
    EXPECT_EQ(error.what(), list.text());
  }
}

TEST(ProblemList, ShowsTheFirstHundredAndCountsTheOthers) {
  ProblemList list;
  for (int i = 0; i < 103; ++i) list.add(fmt::format("{}", i), fmt::format("problem {}", i));
  const std::string text = list.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_TRUE(text.ends_with("\nproblem 99\nand 3 more")) << text;
}

}  // namespace
}  // namespace kzero
