// Decodes UTF-8 one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kzero {

struct Utf8Character {
  std::uint32_t code = 0;  // the code point
  std::size_t bytes = 0;   // 1 to 4; 0: the bytes are not UTF-8
};

/// Returns the first character of a text that is not empty. Overlong forms, surrogates and codes
/// above U+10FFFF are not UTF-8.
Utf8Character first_utf8_character(std::string_view text);

}  // namespace kzero
