// The bytes that tokens represent. They make losses of different tokenizers comparable.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::infer {

/// Returns the number of bytes of each of `vocab` tokens according to a tokenizer.json. It is 0 for
/// special tokens, which represent no text, and for ids that the tokenizer does not know. Throws
/// Error(files) for a tokenizer that kzero does not reproduce, or that has more tokens than the
/// model. Not collective.
std::vector<Index> token_bytes(const std::string& tokenizer, Index vocab);

}  // namespace kzero::infer
