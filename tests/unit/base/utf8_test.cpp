#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kzero {
namespace {

/// The encoding of a number in `bytes` bytes by the bit pattern of RFC 3629 (section 3). It is
/// UTF-8 only if it is the shortest form of a code point.
std::string pattern(std::uint32_t code, int bytes) {
  if (bytes == 1) return {static_cast<char>(code)};
  std::string text(static_cast<std::size_t>(bytes), '\0');
  for (int i = bytes - 1; i > 0; --i, code >>= 6U)
    text[static_cast<std::size_t>(i)] = static_cast<char>(0x80U | (code & 0x3FU));
  text[0] = static_cast<char>((0xF00U >> static_cast<unsigned>(bytes) & 0xFFU) | code);
  return text;
}

int bytes_of(std::uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

bool is_surrogate(std::uint32_t code) { return code >= 0xD800 && code <= 0xDFFF; }

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

TEST(Utf8, decodes_every_code_point_and_refuses_surrogates) {
  for (std::uint32_t code = 0; code <= 0x10FFFF; ++code) {
    const Utf8Character first = first_utf8_character(pattern(code, bytes_of(code)) + "z");
    const std::size_t bytes = is_surrogate(code) ? 0 : static_cast<std::size_t>(bytes_of(code));
    ASSERT_EQ(first.bytes, bytes) << code;
    ASSERT_EQ(first.code, is_surrogate(code) ? 0 : code);
    ASSERT_EQ(first.malformed_bytes, is_surrogate(code) ? 1U : 0U) << code;
    ASSERT_FALSE(first.is_cut) << code;
  }
}

TEST(Utf8, refuses_every_overlong_form_and_every_number_beyond_the_last_code_point) {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    for (int bytes = bytes_of(code) + 1; bytes <= 4; ++bytes) {
      const Utf8Character first = first_utf8_character(pattern(code, bytes));
      ASSERT_EQ(first.bytes, 0U) << code << " in " << bytes;
      ASSERT_EQ(first.malformed_bytes, 1U) << code << " in " << bytes;
      ASSERT_FALSE(first.is_cut) << code << " in " << bytes;
    }
  }
  for (std::uint32_t code = 0x110000; code < 0x200000; ++code)
    ASSERT_EQ(first_utf8_character(pattern(code, 4)).bytes, 0U) << code;
}

TEST(Utf8, tells_where_a_text_ends_within_a_character) {
  for (const std::uint32_t code :
       {0x80U, 0x7FFU, 0x800U, 0xFFFU, 0xD7FFU, 0xE000U, 0xFFFFU, 0x10000U, 0x3FFFFU, 0x10FFFFU}) {
    const std::string character = pattern(code, bytes_of(code));
    for (std::size_t bytes = 1; bytes < character.size(); ++bytes) {
      const Utf8Character cut = first_utf8_character(character.substr(0, bytes));
      EXPECT_EQ(cut.bytes, 0U) << code;
      EXPECT_EQ(cut.malformed_bytes, bytes) << code;
      EXPECT_TRUE(cut.is_cut) << code;
      // If another character follows, the same bytes are malformed, not truncated.
      const Utf8Character followed = first_utf8_character(character.substr(0, bytes) + "z");
      EXPECT_EQ(followed.malformed_bytes, bytes) << code;
      EXPECT_FALSE(followed.is_cut) << code;
    }
  }
}

TEST(Utf8, counts_the_malformed_bytes_that_are_replaced_together) {
  // Examples of the Unicode standard, version 15, tables 3-8 to 3-11.
  const auto replaced = [](std::string_view text) {
    std::vector<std::size_t> lengths;
    while (!text.empty()) {
      const Utf8Character first = first_utf8_character(text);
      if (first.bytes == 0) lengths.push_back(first.malformed_bytes);
      text.remove_prefix(first.bytes > 0 ? first.bytes : first.malformed_bytes);
    }
    return lengths;
  };
  using Lengths = std::vector<std::size_t>;
  EXPECT_EQ(replaced("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), Lengths(8, 1));
  EXPECT_EQ(replaced("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"), Lengths(8, 1));
  EXPECT_EQ(replaced("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"), Lengths(7, 1));
  EXPECT_EQ(replaced("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), (Lengths{2, 1, 3, 2}));
}

TEST(Utf8, finds_the_first_invalid_byte_of_a_text) {
  EXPECT_EQ(first_invalid_byte(""), std::nullopt);
  EXPECT_EQ(first_invalid_byte("a\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80"), std::nullopt);
  EXPECT_EQ(first_invalid_byte(std::string_view("\0z", 2)), std::nullopt);
  EXPECT_EQ(first_invalid_byte("\xffz"), 0U);
  EXPECT_EQ(first_invalid_byte("a\xc3\xb6\xe2\x82"), 3U);
  EXPECT_EQ(first_invalid_byte("a\xc3\xb6\x80"), 3U);
  EXPECT_EQ(first_invalid_byte("\xe2\x82\xac\xed\xa0\x80"), 3U);
}

}  // namespace
}  // namespace kzero
