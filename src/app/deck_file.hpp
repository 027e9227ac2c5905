// The deck as the command line names it.
#pragma once

#include <string>
#include <vector>

#include "deck/document.hpp"

namespace kzero::app {

struct DeckArguments {
  std::string file;
  std::vector<std::string> overrides;  // key=value
};

/// The file's text. Throws Error(usage) if it cannot be read.
deck::Source load(const std::string& file);

}  // namespace kzero::app
