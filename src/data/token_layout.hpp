// Where the tokens of a file lie, and how they are stored.
#pragma once

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

/// The place of the tokens in a file, where they follow one another.
struct TokenLayout {
  Index offset = 0;        // bytes before the first token
  Index width = 1;         // bytes of a token: 1, 2 or 4; little-endian
  Index count = 0;         // tokens
  bool is_signed = false;  // stored as signed integers, whose negative values are no tokens
};

}  // namespace kzero::data
