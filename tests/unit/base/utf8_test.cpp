#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kzero {
namespace {

TEST(Utf8, decodes_characters_of_one_to_four_bytes) {
  const auto is = [](std::string_view text, std::uint32_t code, std::size_t bytes) {
    const Utf8Character first = first_utf8_character(text);
    EXPECT_EQ(first.code, code) << text;
    EXPECT_EQ(first.bytes, bytes) << text;
  };
  is("ab", 'a', 1);
  is("\x7f", 0x7F, 1);
  is("\xc2\x80", 0x80, 2);
  is("\xc3\xb6rg", 0xF6, 2);
  is("\xe0\xa0\x80", 0x800, 3);
  is("\xed\x9f\xbf", 0xD7FF, 3);
  is("\xf0\x90\x80\x80", 0x10000, 4);
  is("\xf4\x8f\xbf\xbf", 0x10FFFF, 4);
}

TEST(Utf8, refuses_all_other_bytes) {
  for (const char* text : {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3z", "\xe0\x9f\xbf",
                           "\xe2\x82", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
                           "\xf0\x90\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_EQ(first_utf8_character(text).bytes, 0U) << text;
  }
}

}  // namespace
}  // namespace kzero
