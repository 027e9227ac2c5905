#include "tokenizer/byte_alphabet.hpp"

#include <array>
#include <cstdint>

#include "tokenizer/unicode.hpp"

namespace kzero::tokenizer {

namespace {

constexpr std::int32_t first_substitute = 0x100;

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::int32_t, 256> code_of_byte{};
  std::array<std::int16_t, 512> byte_of_code{};  // -1: none
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of_code.fill(-1);
  std::int32_t substitute = first_substitute;
  for (int byte = 0; byte < 256; ++byte) {
    const std::int32_t code = stands_for_itself(byte) ? byte : substitute++;
    alphabet.code_of_byte[byte] = code;
    alphabet.byte_of_code[code] = static_cast<std::int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet alphabet = make_alphabet();

}  // namespace

std::string symbol_of(unsigned char byte) {
  const std::int32_t code = alphabet.code_of_byte[byte];  // below 0x200: two bytes at most
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

std::optional<std::string> bytes_of_symbols(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const Character symbol = character_at(text, at);
    if (symbol.code < 0 || symbol.code >= std::ssize(alphabet.byte_of_code)) return {};
    const std::int16_t byte = alphabet.byte_of_code[symbol.code];
    if (byte < 0) return {};
    bytes += static_cast<char>(byte);
    at = symbol.end;
  }
  return bytes;
}

}  // namespace kzero::tokenizer
