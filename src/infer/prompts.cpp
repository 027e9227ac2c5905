#include "infer/prompts.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"

namespace kzero::infer {

namespace {

PromptText prompt_of(const nlohmann::json& line, const std::string& place) {
  KZERO_REQUIRE(line.is_object(), ExitCode::files,
                "{}: must be a JSON object such as {{\"prompt\": \"Once upon a time\"}}", place);
  PromptText prompt;
  KZERO_REQUIRE(line.contains("prompt"), ExitCode::files, "{}: lacks the key \"prompt\"", place);
  for (const auto& [key, value] : line.items()) {
    if (key == "prompt") {
      KZERO_REQUIRE(value.is_string(), ExitCode::files, "{}: prompt must be a text, found {}",
                    place, json_shown(value));
      prompt.text = value.get<std::string>();
    } else if (key == "max_tokens") {
      KZERO_REQUIRE(value.is_number_unsigned() && value > 0 && value <= (1U << 30U),
                    ExitCode::files,
                    "{}: max_tokens must be a whole number from 1 to 1073741824, found {}", place,
                    json_shown(value));
      prompt.max_tokens = value.get<Index>();
    } else {
      fail(ExitCode::files, "{}: unknown key {}; allowed are \"prompt\" and \"max_tokens\"", place,
           json_shown(key));
    }
  }
  return prompt;
}

}  // namespace

std::vector<PromptText> read_prompts(std::istream& in, const std::string& name) {
  std::vector<PromptText> prompts;
  std::string text;
  for (Index number = 1; std::getline(in, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    prompts.push_back(prompt_of(parse_json(text), fmt::format("{}:{}", printable(name), number)));
  }
  KZERO_REQUIRE(!in.bad(), ExitCode::files, "{}: cannot be read", printable(name));
  KZERO_REQUIRE(!prompts.empty(), ExitCode::files, "{}: has no prompts", printable(name));
  return prompts;
}

Prompt encode_prompt(const TokenText& tokens, const PromptText& prompt, Index number,
                     Index max_tokens, Index most) {
  Prompt encoded{tokens.encode(prompt.text), prompt.max_tokens.value_or(max_tokens), number};
  if (encoded.tokens.empty()) {
    KZERO_REQUIRE(!tokens.end_tokens().empty(), ExitCode::usage,
                  "prompt {} is empty, and no end token is known after which a text could begin",
                  number + 1);
    encoded.tokens.push_back(tokens.end_tokens().front());
  }
  const auto count = static_cast<Index>(encoded.tokens.size());
  KZERO_REQUIRE(count <= most, ExitCode::usage,
                "prompt {} has {} tokens, but the model has positions for {}: {}", number + 1,
                count, most, printable_start(prompt.text));
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
