// The post_processor of a tokenizer.json: the tokens that it adds around a text, such as Llama 3's
// <|begin_of_text|>.
#pragma once

#include <vector>

#include "tokenizer/rules.hpp"

namespace kzero::tokenizer {

/// The tokens before and after a text.
struct Frame {
  std::vector<Token> before{};
  std::vector<Token> after{};
};

/// Reads a TemplateProcessing, a RobertaProcessing, a BertProcessing, a ByteLevel, which adds no
/// token, or a Sequence of these. Throws Error(files) for others.
Frame read_post_processor(const Rules& rules, const Rules::Json& value);

}  // namespace kzero::tokenizer
