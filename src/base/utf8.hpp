// Decodes and checks UTF-8 (RFC 3629). Everything in kzero that has to know where a character ends
// asks here. Inline, because the tokenizer decodes every character of its texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace kzero {

struct Utf8Character {
  std::uint32_t code = 0;  // the code point
  std::size_t bytes = 0;   // 1 to 4; 0: the bytes are not UTF-8
  // If they are not UTF-8: the number of bytes, at least 1, that U+FFFD replaces together
  // (Unicode 15, section 3.9, U+FFFD Substitution of Maximal Subparts), and whether the text ends
  // within what may be a character.
  std::size_t malformed_bytes = 0;
  bool is_cut = false;
};

/// Returns the first character of a text that is not empty. Overlong forms, surrogates and codes
/// above U+10FFFF are not UTF-8.
inline Utf8Character first_utf8_character(std::string_view text) {
  const std::uint32_t lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {.code = lead, .bytes = 1};
  if (lead < 0xC2 || lead > 0xF4) return {.malformed_bytes = 1};
  const std::size_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  std::uint32_t code = lead & (0x7FU >> bytes);
  // The second byte's range is narrower after four of the lead bytes. This excludes overlong forms,
  // surrogates, and codes above U+10FFFF.
  std::uint32_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  std::uint32_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < bytes; ++i) {
    if (i == text.size()) return {.malformed_bytes = i, .is_cut = true};
    const std::uint32_t next = static_cast<unsigned char>(text[i]);
    if (next < low || next > high) return {.malformed_bytes = i};
    code = (code << 6U) | (next & 0x3FU);
    low = 0x80;
    high = 0xBF;
  }
  return {.code = code, .bytes = bytes};
}

/// Returns the offset of the first byte that is not part of a UTF-8 character; none if all text is
/// UTF-8.
std::optional<std::size_t> first_invalid_byte(std::string_view text);

}  // namespace kzero
