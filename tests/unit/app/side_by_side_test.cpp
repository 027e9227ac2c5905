#include "app/side_by_side.hpp"

#include <gtest/gtest.h>

namespace kzero::app {
namespace {

using Lines = std::vector<std::string>;

TEST(SideBySide, LinesAreDividedAtSpaces) {
  EXPECT_EQ(wrapped("", 10), (Lines{""}));
  EXPECT_EQ(wrapped("0123456789", 10), (Lines{"0123456789"}));
  EXPECT_EQ(wrapped("01234 56789", 10), (Lines{"01234", "56789"}));
  EXPECT_EQ(wrapped("0123456789 a", 10), (Lines{"0123456789", "a"}));
  EXPECT_EQ(wrapped("01234567890 a", 10), (Lines{"0123456789", "0 a"}));
  EXPECT_EQ(wrapped("a\n\n  b c\n", 10), (Lines{"a", "", "  b c", ""}));
  EXPECT_EQ(wrapped("    indented", 8), (Lines{"    inde", "nted"}));
}

TEST(SideBySide, CharactersHaveTheirWidth) {
  EXPECT_EQ(columns_of("abc"), 3);
  EXPECT_EQ(columns_of("\u00e9e\u0301"), 2);
  EXPECT_EQ(columns_of("\u4e2d\u6587"), 4);
  EXPECT_EQ(columns_of("\U0001f600"), 2);
  EXPECT_EQ(wrapped("\u4e2d\u6587\u4e2d\u6587", 5), (Lines{"\u4e2d\u6587", "\u4e2d\u6587"}));
  EXPECT_EQ(side_by_side("\u4e2d", "b", 21), "\u4e2d        | b\n");
}

TEST(SideBySide, NothingActsOnTheTerminal) {
  EXPECT_EQ(wrapped("a\x1b[2Jb\t\xff", 40), (Lines{"a\\x1b[2Jb\\t\\xff"}));
}

TEST(SideBySide, TheLongerTextEndsAlone) {
  EXPECT_EQ(side_by_side("one two three", "1", 23), "one two    | 1\nthree      |\n");
  EXPECT_EQ(side_by_side("1", "one two three", 23), "1          | one two\n           | three\n");
  EXPECT_EQ(side_by_side("1\n\n", "", 23), "1          |\n");
  for (const Index width : {20, 79, 80, 81}) {
    const std::string long_text(200, 'x');
    const std::string text = side_by_side(long_text, long_text, width);
    EXPECT_LE(columns_of(text.substr(0, text.find('\n'))), width);
  }
}

TEST(SideBySide, LongPromptsLoseTheirMiddle) {
  EXPECT_EQ(excerpt("a\nb", 40), "a\nb\n");
  EXPECT_EQ(excerpt("1\n2\n3\n4\n5\n6\n7\n8", 40), "1\n2\n3\n4\n5\n6\n7\n8\n");
  EXPECT_EQ(excerpt("1\n2\n3\n4\n5\n6\n7\n8\n9", 40), "1\n2\n3\n4\n...\n7\n8\n9\n");
}

}  // namespace
}  // namespace kzero::app
