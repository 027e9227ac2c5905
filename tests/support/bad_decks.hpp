// Reads tests/data/decks/bad_decks.txt. The file's first lines describe its format.
#pragma once

#include <charconv>
#include <filesystem>
#include <fstream>
#include <istream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kzero::tests {

struct BadDeck {
  std::string name;
  std::string text;     ///< The deck, with a newline at the end of each line.
  std::string message;  ///< kzero's message, with a newline at the end of each line.
};

/// Returns the line with each `\xNN` replaced by its byte. Throws std::runtime_error if a `\x` is
/// not followed by two hexadecimal digits.
inline std::string unescaped(std::string_view line) {
  std::string bytes;
  for (std::size_t at = 0; at < line.size();) {
    if (!line.substr(at).starts_with("\\x")) {
      bytes += line[at++];
      continue;
    }
    const std::string_view digits = line.substr(at + 2, 2);
    unsigned value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || read.ptr != digits.data() + 2)
      throw std::runtime_error("\\x without two hexadecimal digits: " + std::string(line));
    bytes += static_cast<char>(value);
    at += 4;
  }
  return bytes;
}

/// Returns the cases in input order. Throws std::runtime_error if a line violates the format.
inline std::vector<BadDeck> read_bad_decks(std::istream& input) {
  constexpr std::string_view name_mark = "=== ";
  constexpr std::string_view message_mark = "--- message";
  enum class Part { none, deck, message };
  std::vector<BadDeck> decks;
  Part part = Part::none;
  for (std::string line; std::getline(input, line);) {
    const auto require = [&](bool fits) {
      if (!fits) throw std::runtime_error("unexpected line among the bad decks: " + line);
    };
    if (line.starts_with(name_mark)) {
      require(part == Part::none);
      decks.push_back({line.substr(name_mark.size()), "", ""});
      part = Part::deck;
    } else if (line == message_mark) {
      require(part == Part::deck);
      part = Part::message;
    } else if (part == Part::deck) {
      decks.back().text += unescaped(line) + '\n';
    } else if (part == Part::message && !line.empty()) {
      decks.back().message += line + '\n';
    } else {
      require(line.empty() || (decks.empty() && line.starts_with('#')));
      part = Part::none;
    }
  }
  if (part == Part::deck) throw std::runtime_error("no message for deck " + decks.back().name);
  return decks;
}

/// Returns the cases of bad_decks.txt in a folder of decks.
inline std::vector<BadDeck> bad_decks(const std::filesystem::path& folder) {
  std::ifstream file(folder / "bad_decks.txt", std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + (folder / "bad_decks.txt").string());
  return read_bad_decks(file);
}

}  // namespace kzero::tests
