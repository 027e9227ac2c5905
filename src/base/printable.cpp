#include "base/printable.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace kzero {

namespace {

/// The first character of a text: its code, and how many bytes encode it; 0 bytes if they are not
/// UTF-8.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7FU >> bytes);
  for (const char c : text.substr(1, bytes - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U) return {};
    code = (code << 6U) | (byte & 0x3FU);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  if (code < smallest[bytes] || is_surrogate || code > 0x10FFFF) return {};
  return {code, bytes};
}

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

std::string spelled(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  if (c == '\r') return "\\r";
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

/// Printable text until `text` ends or more than `most` bytes would be shown.
std::string printable_bytes(std::string_view text, std::size_t most) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= most) return shown + "...";
    const Character character = first_character(text);
    const auto bytes = text.substr(0, character.bytes == 0 ? 1 : character.bytes);
    if (character.bytes > 0 && !is_control(character.code)) {
      shown += bytes;
    } else {
      for (const char c : bytes) shown += spelled(c);
    }
    text.remove_prefix(bytes.size());
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return printable_bytes(text, std::string::npos); }

std::string printable_start(std::string_view text) { return printable_bytes(text, 80); }

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos;) {
    shown += printable(text.substr(0, end)) + '\n';
    text.remove_prefix(end + 1);
  }
  return shown + printable(text);
}

}  // namespace kzero
