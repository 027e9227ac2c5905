// The characters that represent bytes in the vocabulary of byte-level BPE (openai/gpt-2,
// src/encoder.py). A printable byte represents itself; the 68 others are U+0100 and following, in
// order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kzero::tokenizer {

/// The character, in UTF-8, that represents a byte.
std::string symbol_of(unsigned char byte);

/// Converts a text of such characters to bytes; nothing if a character represents no byte.
std::optional<std::string> bytes_of_symbols(std::string_view text);

}  // namespace kzero::tokenizer
