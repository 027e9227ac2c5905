// The bytes that tokens represent. They make losses of different tokenizers comparable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::infer {

/// Returns the number of bytes of each of `vocab` tokens according to a tokenizer.json. It is 0 for
/// special tokens, which represent no text, and for ids that the tokenizer does not know. Throws
/// Error(files) for a tokenizer that kzero does not reproduce, or that has more tokens than the
/// model. Not collective.
std::vector<Index> token_bytes(const std::string& tokenizer, Index vocab);

/// Returns a hash of the texts of a tokenizer.json's tokens and of which are special; of the file's
/// bytes, if kzero does not reproduce it. Throws Error(files) if it cannot be read. Not collective.
std::uint64_t tokenizer_hash(const std::string& tokenizer);

}  // namespace kzero::infer
