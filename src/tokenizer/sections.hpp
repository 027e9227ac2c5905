// Two sections of a tokenizer.json. The pre_tokenizer has the steps that cut text into words. The
// post_processor has the tokens that are added around a text, such as Llama 3's <|begin_of_text|>.
#pragma once

#include <vector>

#include "tokenizer/rules.hpp"
#include "tokenizer/split.hpp"

namespace kzero::tokenizer {

/// Reads a ByteLevel, or a Sequence of Split and Digits that ends with a ByteLevel. Throws
/// Error(files) for other pre-tokenizers, patterns and options.
std::vector<SplitStep> read_pre_tokenizer(const Rules& rules, const Rules::Json& value);

/// The tokens before and after a text.
struct Frame {
  std::vector<Token> before{};
  std::vector<Token> after{};
};

/// Reads a TemplateProcessing, a RobertaProcessing, a BertProcessing, a ByteLevel, which adds no
/// token, or a Sequence of these. Throws Error(files) for others.
Frame read_post_processor(const Rules& rules, const Rules::Json& value);

}  // namespace kzero::tokenizer
