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

TEST(Printable, AMessageIsNotAsLongAsTheValuesThatItQuotes) {
  const std::string all(1600, 'x');
  EXPECT_EQ(printable_lines(all + "\nb"), all + "\nb");
  const std::string cut =
      printable_lines("FILE: \"" + std::string(900000, 'x') + "\" is not a number\nb");
  EXPECT_EQ(cut, "FILE: \"" + std::string(1193, 'x') + "... (898524 bytes are left out here) " +
                     std::string(283, 'x') + "\" is not a number\nb");
  std::string accents;
  for (int i = 0; i < 1000; ++i) accents += "\u00e9\u4e2d";
  for (int i = 0; i < 5; ++i) {
    const std::string shown = printable_lines(std::string(i, 'x') + accents);
    EXPECT_LE(shown.size(), 1600U);
    EXPECT_EQ(shown, printable(shown));  // it is cut between characters
  }
}

TEST(Printable, AMessageHasAtMostTwoHundredLines) {
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += "a\n";
  EXPECT_EQ(printable_lines(lines + "b"), lines + "b");
  EXPECT_EQ(printable_lines(lines + "b\nc\nd"), lines + "(3 more lines)");
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
