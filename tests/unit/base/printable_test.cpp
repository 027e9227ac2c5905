// External text cannot send commands to the terminal that displays it.
#include "base/printable.hpp"

#include <gtest/gtest.h>

namespace kzero {

namespace {

TEST(Printable, ControlCharactersAreSpelledOut) {
  EXPECT_EQ(printable("\x1b[31mred\x07\x7f"), "\\x1b[31mred\\x07\\x7f");
  EXPECT_EQ(printable("a\nb\tc\r"), "a\\nb\\tc\\r");
  EXPECT_EQ(printable(std::string("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m");  // the one-character form of ESC [
}

TEST(Printable, TextOfAnyLanguageStays) {
  for (const char* text : {"", "h.0.ln_1.weight",
                           "Gr\xc3\xb6\xc3\x9f"
                           "e",
                           "\xc2\xa0", "\xe9\x87\x8d\xe3\x81\xbf", "\xf0\x9f\x99\x82"}) {
    EXPECT_EQ(printable(text), text);
    EXPECT_EQ(printable_lines(text), text);
  }
}

TEST(Printable, BytesThatAreNoTextAreSpelledOut) {
  EXPECT_EQ(printable("\x9b"), "\\x9b");           // a control character of 8-bit terminals
  EXPECT_EQ(printable("\xe9\x87"), "\\xe9\\x87");  // truncated
  EXPECT_EQ(printable("\xc3("), "\\xc3(");         // not a continuation byte
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");  // overlong
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Printable, LinesOfAMessageStayLines) {
  EXPECT_EQ(printable_lines("one\n  \x1b[2Jtwo\n"), "one\n  \\x1b[2Jtwo\n");
  EXPECT_EQ(printable_lines("\n\n"), "\n\n");
}

TEST(Printable, StartsOfLongTextsEndBetweenCharacters) {
  const std::string all(80, 'x');
  EXPECT_EQ(printable_start(all), all);
  EXPECT_EQ(printable_start(all + "y"), all + "...");
  EXPECT_EQ(printable_start(all.substr(1) + "\u00e9z"), all.substr(1) + "\u00e9...");
  EXPECT_EQ(printable_start("a\nb\x1b"), "a\\nb\\x1b");
}

}  // namespace

}  // namespace kzero
