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

/// How long to wait for a pipe: for a program that opens it for writing, and for bytes.
struct PipePatience {
  std::chrono::milliseconds for_writer{30'000}, for_bytes{30'000};
};

/// Reads the text of a regular file, or of a pipe, which can be read only once. Throws Error(usage)
/// if it is neither, cannot be read or has more than 256 KiB, or if patience with the pipe ends.
/// `kind` is the name in messages of what the file should be.
deck::Source load(const std::string& file, const PipePatience& patience = {},
                  const std::string& kind = "deck");

}  // namespace kzero::app
