#include "base/utf8.hpp"

namespace kzero {

std::optional<std::size_t> first_invalid_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = first_utf8_character(text.substr(at));
    if (character.bytes == 0) return at;
    at += character.bytes;
  }
  return std::nullopt;
}

}  // namespace kzero
