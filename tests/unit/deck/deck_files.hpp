// The decks of tests/data/decks. Comment lines at the beginning of a deck may specify how to read
// it: `# ranks = 4`, `# purpose = train`, `# override = train.steps=x`.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deck/reader.hpp"

namespace kzero::deck {

struct DeckFile {
  Source source;
  std::vector<std::string> overrides;
  Target target;
};

inline std::filesystem::path decks() { return std::filesystem::path(KZERO_TEST_DATA) / "decks"; }

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline DeckFile deck_file(std::string file_name, std::string bytes) {
  DeckFile deck{{std::move(file_name), std::move(bytes)}, {}, {}};
  // The first and the last of a GPT-2, which messages name, and one between.
  deck.target.parameter_names = [](const Config&) {
    return std::vector<std::string>{"wte.weight", "h.0.mlp.c_fc.bias", "ln_f.bias"};
  };
  std::istringstream lines(deck.source.text);
  for (std::string line; std::getline(lines, line) && line.starts_with("# ");) {
    const auto value = [&](std::string_view name) {
      return line.starts_with(name) ? line.substr(name.size()) : "";
    };
    if (const auto ranks = value("# ranks = "); !ranks.empty())
      deck.target.ranks = std::stol(ranks);
    if (value("# purpose = ") == "train") deck.target.purpose = Purpose::train;
    if (const auto text = value("# override = "); !text.empty()) deck.overrides.push_back(text);
  }
  return deck;
}

inline DeckFile read_deck_file(const std::filesystem::path& path) {
  return deck_file(path.filename().string(), text_of(path));
}

/// The sorted names, without extension, of the decks in tests/data/decks/good.
inline std::vector<std::string> good_deck_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(decks() / "good")) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace kzero::deck
