#include "base/printable.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "base/utf8.hpp"

namespace kzero {

namespace {

bool is_control(std::uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

std::string spelled(char c) {
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  if (c == '\r') return "\\r";
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
}

/// Printable text, until `text` ends or the result would exceed `most` bytes.
std::string printable_bytes(std::string_view text, std::size_t most) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= most) return shown + "...";
    const Utf8Character character = first_utf8_character(text);
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
