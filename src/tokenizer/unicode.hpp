// Unicode as in Hugging Face's tokenizers 0.23, with any ICU from version 72 on: character classes
// of Unicode 16, and composition (NFC) of Unicode 9. Newer characters are left unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kzero::tokenizer {

enum class CharacterClass : std::uint8_t { letter, number, space, other };

struct Character {
  std::int32_t code = 0;  // -1: the bytes are not UTF-8
  CharacterClass kind = CharacterClass::other;
  std::size_t end = 0;  // the byte after it
};

/// The character that begins at byte `begin` < text.size() of UTF-8 text.
Character character_at(std::string_view text, std::size_t begin);

/// Normalizes UTF-8 text of fewer than 2^31 bytes to form C.
std::string composed(std::string_view text);

}  // namespace kzero::tokenizer
