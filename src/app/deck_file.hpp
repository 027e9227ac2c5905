// Reads the deck that the command line names.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "deck/document.hpp"

namespace kzero::app {

struct DeckArguments {
  std::string file;
  std::vector<std::string> overrides;  // key=value
};

/// Reads the text of a regular file, or of a pipe, which can be read once. Throws Error(usage) if
/// it is neither or cannot be read, if it has more than 1 MiB, or if nobody writes to the pipe for
/// as long as `patience`.
deck::Source load(const std::string& file,
                  std::chrono::milliseconds patience = std::chrono::seconds(30));

}  // namespace kzero::app
