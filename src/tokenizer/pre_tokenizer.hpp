// The pre_tokenizer of a tokenizer.json: the steps that cut text into words.
#pragma once

#include <vector>

#include "tokenizer/rules.hpp"
#include "tokenizer/split.hpp"

namespace kzero::tokenizer {

/// Reads a ByteLevel, or a Sequence of Split and Digits that ends with a ByteLevel. Throws
/// Error(files) for other pre-tokenizers, patterns and options.
std::vector<SplitStep> read_pre_tokenizer(const Rules& rules, const Rules::Json& value);

}  // namespace kzero::tokenizer
