// Where the tokens of a file lie, and how they are stored.
#pragma once

#include <vector>

#include "base/types.hpp"
#include "deck/config.hpp"

namespace kzero::data {

/// The deck's description of how the tokens of files are stored.
struct TokenEncoding {
  /// `raw_bytes`, 2 or 4, is the width of a token in format "raw"; the other formats ignore it.
  TokenEncoding(deck::DataFormat how, Index raw_bytes = 2) : format(how), token_bytes(raw_bytes) {}

  deck::DataFormat format;
  Index token_bytes;
};

/// Tokens that lie one behind the other in a file.
struct Extent {
  Index first = 0;   // its first token, counted over the whole file
  Index offset = 0;  // the byte at which that is

  bool operator==(const Extent&) const = default;
};

/// The place of the tokens in a file.
struct TokenLayout {
  Index offset = 0;               // bytes before the first token
  Index width = 1;                // bytes of a token: 1, 2 or 4; little-endian
  Index count = 0;                // tokens
  bool is_signed = false;         // stored as signed integers, whose negative values are no tokens
  std::vector<Extent> extents{};  // from the first token on; empty: one, at `offset`
};

}  // namespace kzero::data
