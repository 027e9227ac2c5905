// The place of the tokens in a file, and how they are stored.
#pragma once

#include "base/types.hpp"
#include "deck/config.hpp"

namespace kzero::data {

/// The deck's description of how files store tokens.
struct TokenEncoding {
  /// `raw_bytes`, 2 or 4, is the width of a token in format "raw"; the other formats ignore it.
  TokenEncoding(deck::DataFormat how, Index raw_bytes = 2) : format(how), token_bytes(raw_bytes) {}

  deck::DataFormat format;
  Index token_bytes;
};

/// The place of the tokens, which are contiguous, in a file.
struct TokenLayout {
  Index offset = 0;        // bytes before the first token
  Index width = 1;         // bytes of a token: 1, 2 or 4; little-endian
  Index count = 0;         // tokens
  bool is_signed = false;  // stored as signed integers; negative values are not tokens
};

}  // namespace kzero::data
