// Prompts as people give them, and what became of them, as text and as JSON lines.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "infer/generator.hpp"
#include "infer/token_text.hpp"

namespace kzero::infer {

struct PromptText {
  std::string text;
  std::optional<Index> max_tokens{};  // none: as for all
};

/// Reads JSON lines {"prompt": TEXT, "max_tokens": N}, the latter if wanted; empty lines are passed
/// over. Throws Error(files) that names `name`, the line, the key and the value found.
std::vector<PromptText> read_prompts(std::istream& in, const std::string& name);

/// The tokens of a prompt; for an empty text the end token, behind which a text begins. Throws
/// Error(usage) for an empty text without an end token, or one with more tokens than `most`.
Prompt encode_prompt(const TokenText& tokens, const PromptText& prompt, Index number,
                     Index max_tokens, Index most);

/// {"prompt": .., "text": .., "tokens": [..], "reason": "stop" | "length" | "end_token"} and a line
/// end; what is no UTF-8 in the prompt becomes U+FFFD.
std::string json_line(const PromptText& prompt, const Continuation& made);

/// A line that names the prompt by number, from 1, and its beginning; then the text.
std::string labelled_block(const PromptText& prompt, Index number, const Continuation& made);

}  // namespace kzero::infer
