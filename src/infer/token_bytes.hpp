// The bytes that tokens stand for, which make losses of different tokenizers comparable.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::infer {

/// Returns the bytes of each of `vocab` tokens by a tokenizer.json. Special tokens, which stand for
/// no text, have none, and neither have ids that the tokenizer does not know. Throws Error(files)
/// for a tokenizer that is not reproduced, or that has more tokens than the model. Not collective.
std::vector<Index> token_bytes(const std::string& tokenizer, Index vocab);

}  // namespace kzero::infer
