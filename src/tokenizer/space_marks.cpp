#include "tokenizer/space_marks.hpp"

#include <fmt/format.h>

#include <charconv>

namespace kzero::tokenizer {

namespace {

/// The text with `to` for each `from`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  result.reserve(text.size());
  for (;;) {
    const std::size_t found = text.find(from);
    result += text.substr(0, found);
    if (found == std::string_view::npos) return result;
    result += to;
    text.remove_prefix(found + from.size());
  }
}

}  // namespace

std::string marked(std::string_view text, bool has_first) {
  std::string result = replaced(text, " ", space_mark);
  if (has_first) result.insert(0, space_mark);
  return result;
}

std::string byte_piece(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

std::optional<unsigned char> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || !piece.ends_with('>')) return std::nullopt;
  const char* begin = piece.data() + (piece[3] == '+' ? 4 : 3);  // Rust's numbers may have a sign
  const char* const end = piece.data() + 5;
  unsigned char byte = 0;
  const auto [stop, problem] = std::from_chars(begin, end, byte, 16);
  return problem == std::errc() && stop == end ? std::optional(byte) : std::nullopt;
}

std::string bytes_of_piece(std::string_view piece) {
  const std::string text = replaced(piece, space_mark, " ");
  const auto byte = byte_of_piece(text);
  return byte ? std::string(1, static_cast<char>(*byte)) : text;
}

}  // namespace kzero::tokenizer
