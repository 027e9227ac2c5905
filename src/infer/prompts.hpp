// Reads prompts from users, and formats the results as text and as JSON lines.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

#include "infer/chat_parts.hpp"
#include "infer/generator.hpp"
#include "infer/token_text.hpp"

namespace kzero::infer {

struct PromptText {
  std::string text;
  std::optional<Index> max_tokens{};  // none: the value for all prompts
};

/// Reads JSON lines {"prompt": TEXT, "max_tokens": N}; the latter is optional, and empty lines are
/// skipped. With `chat` a prompt is a message of the user, and {"messages": [{"role": ROLE,
/// "content": TEXT}, ..]} may replace it. Throws Error(files) that names `name`, the line, the key
/// and the value found.
std::vector<PromptText> read_prompts(std::istream& in, const std::string& name,
                                     const ChatParts* chat = nullptr);

/// A message of the user, as the chat template writes it.
PromptText chat_prompt(const ChatParts& chat, const std::string& text);

/// The tokens of a prompt. For an empty text this is the end token, after which a text begins.
/// Throws Error(usage) for an empty text without an end token, or a text with more tokens than
/// `max_sequence`.
Prompt encode_prompt(const TokenText& tokens, const PromptText& prompt, Index number,
                     Index max_tokens, Index max_sequence);

/// {"prompt": .., "text": .., "tokens": [..], "reason": "stop" | "length" | "end_token"} and a line
/// end. Bytes of the prompt that are not UTF-8 become U+FFFD.
std::string json_line(const PromptText& prompt, const Continuation& made);

/// A line with the prompt's number, from 1, and its beginning; then the text.
std::string labelled_block(const PromptText& prompt, Index number, const Continuation& made);

}  // namespace kzero::infer
