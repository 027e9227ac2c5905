// Unicode as in Hugging Face's tokenizers 0.23, with any ICU from version 72 on: the general
// categories of Unicode 16, and composition (NFC) of Unicode 9. Newer characters are left
// unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kzero::tokenizer {

/// Sets of characters by their properties: bits of general categories, and two bits for white space
/// and everything else. A character has one bit of each kind.
using Properties = std::uint32_t;
inline constexpr Properties white_space = Properties{1} << 30U;
inline constexpr Properties no_white_space = Properties{1} << 31U;
inline constexpr Properties all_categories = white_space - 1;

/// The bits of a general category, such as "Lu", or of a group of them, such as "L". Nothing for
/// other names.
std::optional<Properties> categories_named(std::string_view name);

struct Character {
  std::int32_t code = 0;  // -1: the bytes are not UTF-8
  Properties properties = 0;
  std::size_t end = 0;  // the byte after it

  bool is_space() const { return (properties & white_space) != 0; }
  bool is_word() const;  // a letter, mark, digit, connector or joiner
};

/// The character that begins at byte `begin` < text.size() of UTF-8 text.
Character character_at(std::string_view text, std::size_t begin);

/// The first byte of the character that ends at byte `end` > 0 of UTF-8 text.
inline std::size_t begin_of_character(std::string_view text, std::size_t end) {
  do --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
  return end;
}

/// Normalizes UTF-8 text of fewer than 2^31 bytes to form C.
std::string composed(std::string_view text);

}  // namespace kzero::tokenizer
