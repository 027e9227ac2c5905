// Reads the deck named on the command line.
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

constexpr std::chrono::seconds pipe_patience{30};

/// Reads the text of a regular file, or of a pipe, which can be read only once. Throws Error(usage)
/// if it is neither, cannot be read or has more than 256 KiB, or if nobody writes to the pipe for
/// `patience`. `kind` is the name in messages of what the file should be.
deck::Source load(const std::string& file, std::chrono::milliseconds patience = pipe_patience,
                  const std::string& kind = "deck");

}  // namespace kzero::app
