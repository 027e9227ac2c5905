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

TEST(ProblemList, ShowsTheFirstHundredLinesAndCountsTheOthers) {
  ProblemList list;
  for (int i = 0; i < 103; ++i) {
    const std::string name = fmt::format("{}{}", char('a' + i / 10), char('a' + i % 10));
    list.add(name, fmt::format("problem of its own kind {0} {0}", name));
  }
  const std::string text = list.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_TRUE(text.ends_with(" jj jj\nand 3 more")) << text;
}

TEST(ProblemList, HasOneLineForManyOfAKind) {
  ProblemList list;
  const auto add = [&list](const std::string& name) {
    list.add(name, fmt::format("{}: has {} bytes", name, 7 * list.problems().size()));
  };
  for (const char c : std::string_view("abcdefgh")) add(std::string(1, c));
  list.add("data.files", "data.files: another kind");
  const std::string eight = list.text();
  EXPECT_EQ(std::count(eight.begin(), eight.end(), '\n'), 8) << eight;
  for (int i = 0; i < 10000; ++i) add(fmt::format("folder/{}", i));
  EXPECT_EQ(list.text(),
            "a: has 0 bytes (and 10007 more like this: b, c, d, ...)\ndata.files: another kind");
}

}  // namespace
}  // namespace kzero
