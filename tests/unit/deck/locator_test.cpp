#include "deck/problem.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kzero::deck {
namespace {

const std::string deck_name = "t";

TEST(Locator, counts_characters_from_one) {
  const std::string text = "ab\nö = 1\n\nlast";
  const Locator locator(deck_name, text);
  EXPECT_EQ(locator.offset(1, 1), 0U);
  EXPECT_EQ(locator.offset(2, 2), 5U) << "after the two bytes of ö";
  EXPECT_EQ(locator.place(5).text, "t:2:2");
  EXPECT_EQ(locator.place(text.size()).text, "t:4:5");
  for (std::size_t at : {0, 2, 3, 5, 9, 10, 13}) {
    const SourceLocation place = locator.place(at);
    EXPECT_EQ(locator.offset(static_cast<std::size_t>(place.line),
                             static_cast<std::size_t>(place.column)),
              at);
  }
}

TEST(Locator, stays_within_the_line_and_the_text) {
  const std::string text = "ab\ncd";
  const Locator locator(deck_name, text);
  EXPECT_EQ(locator.offset(1, 9), 2U);
  EXPECT_EQ(locator.offset(2, 9), 5U);
  EXPECT_EQ(locator.offset(9, 1), 3U);
  EXPECT_EQ(Locator(deck_name, "").place(0).text, "t:1:1");
}

TEST(Locator, leaves_out_a_byte_order_mark) {
  const Locator locator(deck_name, "\xEF\xBB\xBFx");
  EXPECT_EQ(locator.offset(1, 1), 3U);
  EXPECT_EQ(locator.place(3).text, "t:1:1");
  EXPECT_EQ(locator.place(0).text, "t:1:1");
  EXPECT_EQ(locator.line_at(0), "x");
}

TEST(Locator, shows_a_line_without_its_indent_and_end) {
  const Locator locator(deck_name, "a\r\n  \t b c\r\n");
  EXPECT_EQ(locator.line_at(5), "b c");
  EXPECT_EQ(locator.line_at(0), "a");
  EXPECT_EQ(locator.line_at(12), "");
  EXPECT_EQ(locator.line_start(5), 3U);
}

}  // namespace
}  // namespace kzero::deck
