#include "app/side_by_side.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/printable.hpp"
#include "base/utf8.hpp"

namespace kzero::app {

namespace {

struct CodeRange {
  std::uint32_t first, last;
};

// Blocks of Unicode 16 whose characters are combining, and blocks that are wide (East Asian Width W
// and F, emoji with a picture of their own). Terminals differ about single characters.
constexpr std::array combining{
    CodeRange{0x300, 0x36F},   CodeRange{0x483, 0x489},   CodeRange{0x591, 0x5BD},
    CodeRange{0x610, 0x61A},   CodeRange{0x64B, 0x65F},   CodeRange{0x200B, 0x200F},
    CodeRange{0x20D0, 0x20F0}, CodeRange{0xFE00, 0xFE0F}, CodeRange{0xFE20, 0xFE2F}};
constexpr std::array wide{
    CodeRange{0x1100, 0x115F},   CodeRange{0x2E80, 0x303E},   CodeRange{0x3041, 0xA4CF},
    CodeRange{0xA960, 0xA97F},   CodeRange{0xAC00, 0xD7A3},   CodeRange{0xF900, 0xFAFF},
    CodeRange{0xFE30, 0xFE6F},   CodeRange{0xFF01, 0xFF60},   CodeRange{0xFFE0, 0xFFE6},
    CodeRange{0x1F300, 0x1F64F}, CodeRange{0x1F680, 0x1F6FF}, CodeRange{0x1F900, 0x1FAFF},
    CodeRange{0x20000, 0x3FFFD}};

template <class Ranges>
bool is_in(const Ranges& ranges, std::uint32_t code) {
  return std::ranges::any_of(ranges,
                             [&](const CodeRange& r) { return r.first <= code && code <= r.last; });
}

Index columns_of(const Utf8Character& character) {
  if (is_in(combining, character.code)) return 0;
  return is_in(wide, character.code) ? 2 : 1;
}

/// The bytes of as many characters at the beginning of a text as fit into `width`.
std::size_t fitting_bytes(std::string_view text, Index width) {
  std::size_t at = 0;
  for (Index used = 0; at < text.size();) {
    const Utf8Character character = first_utf8_character(text.substr(at));
    used += columns_of(character);
    if (used > width) break;
    at += std::max<std::size_t>(character.bytes, 1);
  }
  return at;
}

/// Appends the lines of a text without line ends.
void wrap_line(std::string_view text, Index width, std::vector<std::string>& lines) {
  while (true) {
    const std::size_t fits = fitting_bytes(text, width);
    if (fits == text.size()) break;
    // At the last space that has something before it. The space itself is left out.
    std::size_t end = text.substr(0, fits + 1).find_last_of(' ');
    const bool has_space = end != std::string_view::npos &&
                           text.substr(0, end).find_first_not_of(' ') != std::string_view::npos;
    if (!has_space) end = fits;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(has_space ? end + 1 : end);
  }
  lines.emplace_back(text);
}

}  // namespace

Index columns_of(std::string_view text) {
  Index width = 0;
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    width += columns_of(character);
    text.remove_prefix(std::max<std::size_t>(character.bytes, 1));
  }
  return width;
}

std::vector<std::string> wrapped(std::string_view text, Index width) {
  std::vector<std::string> lines;
  while (true) {
    const std::size_t end = text.find('\n');
    wrap_line(printable(text.substr(0, end)), width, lines);
    if (end == std::string_view::npos) return lines;
    text.remove_prefix(end + 1);
  }
}

std::string excerpt(std::string_view text, Index width) {
  constexpr std::ptrdiff_t most = 8, at_begin = 4, at_end = 3;
  std::vector<std::string> lines = wrapped(text, width);
  if (std::ssize(lines) > most) {
    lines[at_begin] = "...";
    lines.erase(lines.begin() + at_begin + 1, lines.end() - at_end);
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::string side_by_side(std::string_view left, std::string_view right, Index width) {
  constexpr std::string_view between = " | ";
  const Index half = (width - std::ssize(between)) / 2;
  std::vector<std::string> first = wrapped(left, half), second = wrapped(right, half);
  for (std::vector<std::string>* lines : {&first, &second}) {
    while (lines->size() > 1 && lines->back().empty()) lines->pop_back();
  }
  std::string text;
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    std::string line = i < first.size() ? first[i] : std::string();
    line.append(static_cast<std::size_t>(half - columns_of(line)), ' ');
    line += between;
    if (i < second.size()) line += second[i];
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace kzero::app
