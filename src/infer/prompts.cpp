#include "infer/prompts.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"

namespace kzero::infer {

namespace {

std::vector<Message> messages_of(const nlohmann::json& list, const std::string& place) {
  std::vector<Message> messages;
  const auto refuse = [&](const nlohmann::json& value) {
    fail(ExitCode::files,
         "{}: messages must be a list of {{\"role\": \"user\", \"content\": \"..\"}}, found {}",
         place, json_shown(value));
  };
  if (!list.is_array()) refuse(list);
  for (const nlohmann::json& one : list) {
    const bool is_known = one.is_object() && one.size() == 2 && one.contains("role") &&
                          one.contains("content") && one["role"].is_string() &&
                          one["content"].is_string();
    if (!is_known) refuse(one);
    messages.push_back({one["role"].get<std::string>(), one["content"].get<std::string>()});
  }
  return messages;
}

/// The text to continue of a line, and in a chat that of its messages.
std::string text_of(const nlohmann::json& line, const std::string& place, const ChatParts* chat) {
  const bool has_messages = chat != nullptr && line.contains("messages");
  KZERO_REQUIRE(has_messages != line.contains("prompt"), ExitCode::files, "{}: {}", place,
                has_messages ? "has both \"prompt\" and \"messages\"" : "lacks the key \"prompt\"");
  if (has_messages) return chat->text(messages_of(line["messages"], place));
  const nlohmann::json& prompt = line["prompt"];
  KZERO_REQUIRE(prompt.is_string(), ExitCode::files, "{}: prompt must be a text, found {}", place,
                json_shown(prompt));
  const auto text = prompt.get<std::string>();
  return chat == nullptr ? text : chat_prompt(*chat, text).text;
}

PromptText prompt_of(const nlohmann::json& line, const std::string& place, const ChatParts* chat) {
  KZERO_REQUIRE(line.is_object(), ExitCode::files,
                "{}: must be a JSON object such as {{\"prompt\": \"Once upon a time\"}}", place);
  for (const auto& [key, value] : line.items()) {
    if (key == "prompt" || key == "max_tokens" || (chat != nullptr && key == "messages")) continue;
    fail(ExitCode::files, "{}: unknown key {}; allowed are \"prompt\" and \"max_tokens\"{}", place,
         json_shown(key), key == "messages" ? ", and with --chat \"messages\"" : "");
  }
  PromptText prompt{.text = text_of(line, place, chat)};
  if (const auto found = line.find("max_tokens"); found != line.end()) {
    KZERO_REQUIRE(found->is_number_unsigned() && *found > 0 && *found <= (1U << 30U),
                  ExitCode::files,
                  "{}: max_tokens must be a whole number from 1 to 1073741824, found {}", place,
                  json_shown(*found));
    prompt.max_tokens = found->get<Index>();
  }
  return prompt;
}

}  // namespace

PromptText chat_prompt(const ChatParts& chat, const std::string& text) {
  const Message message{"user", text};
  return {.text = chat.text(std::span(&message, 1))};
}

std::vector<PromptText> read_prompts(std::istream& in, const std::string& name,
                                     const ChatParts* chat) {
  std::vector<PromptText> prompts;
  std::string text;
  for (Index number = 1; std::getline(in, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    prompts.push_back(
        prompt_of(parse_json(text), fmt::format("{}:{}", printable(name), number), chat));
  }
  KZERO_REQUIRE(!in.bad(), ExitCode::files, "{}: cannot be read", printable(name));
  KZERO_REQUIRE(!prompts.empty(), ExitCode::files, "{}: has no prompts", printable(name));
  return prompts;
}

Prompt encode_prompt(const TokenText& tokens, const PromptText& prompt, Index number,
                     Index max_tokens, Index max_sequence) {
  Prompt encoded{tokens.encode(prompt.text), prompt.max_tokens.value_or(max_tokens), number};
  if (encoded.tokens.empty()) {
    KZERO_REQUIRE(!tokens.end_tokens().empty(), ExitCode::usage,
                  "prompt {} is empty, and no end token is known after which a text could begin",
                  number + 1);
    encoded.tokens.push_back(tokens.end_tokens().front());
  }
  const auto count = static_cast<Index>(encoded.tokens.size());
  KZERO_REQUIRE(count <= max_sequence, ExitCode::usage,
                "prompt {} has {} tokens, but the model has positions for {}: {}", number + 1,
                count, max_sequence, printable_start(prompt.text));
  return encoded;
}

std::string json_line(const PromptText& prompt, const Continuation& made) {
  const nlohmann::ordered_json line{{"prompt", prompt.text},
                                    {"text", made.text},
                                    {"tokens", made.tokens},
                                    {"reason", name_of(made.reason)}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string labelled_block(const PromptText& prompt, Index number, const Continuation& made) {
  return fmt::format("--- prompt {}: {}\n{}\n", number + 1, printable_start(prompt.text),
                     made.text);
}

}  // namespace kzero::infer
