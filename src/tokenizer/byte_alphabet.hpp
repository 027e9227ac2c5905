// The characters that stand for bytes in the vocabulary of byte-level BPE (openai/gpt-2,
// src/encoder.py): a printable byte for itself, the 68 others, in order, for U+0100 and on.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kzero::tokenizer {

/// The character, in UTF-8, that stands for a byte.
std::string symbol_of(unsigned char byte);

/// The bytes for which the characters of a text stand; none if a character stands for no byte.
std::optional<std::string> bytes_of_symbols(std::string_view text);

}  // namespace kzero::tokenizer
