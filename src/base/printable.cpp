#include "base/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
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

constexpr std::size_t longest_line = 1600, head_of_line = 1200, tail_of_line = 300;  // bytes
constexpr std::size_t max_lines = 200;

/// Printable text, until `text` ends or the result would exceed `max_bytes` bytes.
std::string printable_bytes(std::string_view text, std::size_t max_bytes) {
  std::string shown;
  while (!text.empty()) {
    if (shown.size() >= max_bytes) return shown + "...";
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

/// A line of a message. Of a long one, which quotes a long value, the start says where the fault is
/// and the end what is allowed.
std::string printable_line(std::string_view text) {
  std::string shown = printable(text);
  if (shown.size() <= longest_line) return shown;
  std::string_view tail = std::string_view(shown).substr(shown.size() - tail_of_line);
  while (first_utf8_character(tail).bytes == 0) tail.remove_prefix(1);
  const std::string head = printable_bytes(text, head_of_line);
  return fmt::format("{} ({} bytes are left out here) {}", head,
                     shown.size() - head_of_line - tail.size(), tail);
}

}  // namespace

std::string printable(std::string_view text) { return printable_bytes(text, std::string::npos); }

std::string printable_start(std::string_view text) { return printable_bytes(text, 80); }

std::string printable_lines(std::string_view text) {
  std::string shown;
  std::size_t lines = 0;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; ++lines) {
    if (lines == max_lines)
      return shown + fmt::format("({} more lines)", std::ranges::count(text, '\n') + 1);
    shown += printable_line(text.substr(0, end)) + '\n';
    text.remove_prefix(end + 1);
  }
  return shown + printable_line(text);
}

}  // namespace kzero
