#include "infer/chat_parts.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/model_file.hpp"
#include "convert/weight_files.hpp"
#include "tokenizer/unicode.hpp"

namespace kzero::infer {

namespace {

/// White space as Python's str.strip() knows it, with which templates remove it.
bool is_space(const tokenizer::Character& character) {
  return character.is_space() || (character.code >= 0x1C && character.code <= 0x1F);
}

std::string_view stripped(std::string_view text) {
  std::size_t begin = text.size(), end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const tokenizer::Character character = tokenizer::character_at(text, at);
    if (!is_space(character)) {
      begin = std::min(begin, at);
      end = character.end;
    }
    at = character.end;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

}  // namespace

ChatParts::ChatParts(const std::filesystem::path& file) : file_(printable(file.string())) {
  constexpr Index max_bytes = Index{1} << 20;
  const auto folder = printable(file.parent_path().empty() ? "." : file.parent_path().string());
  KZERO_REQUIRE(convert::is_there(file), ExitCode::files,
                "--chat: there is no {}; `python3 input/prepare_chat_parts.py {}` writes it from "
                "the chat template there",
                file_, folder);
  const nlohmann::json json = convert::read_json_object(file, max_bytes);
  try {
    KZERO_REQUIRE(json.at("version") == 1, ExitCode::files,
                  "{}: is of another version; write it again with input/prepare_chat_parts.py",
                  file_);
    json.at("between").get_to(between_);
    json.at("strips").get_to(strips_);
  } catch (const nlohmann::json::exception&) {
    fail(ExitCode::files,
         "{}: is not a file of input/prepare_chat_parts.py, with the keys version, between and "
         "strips",
         file_);
  }
}

std::string ChatParts::text(std::span<const Message> messages) const {
  std::string text, last = "start";
  const auto join = [&](const std::string& next) {
    const auto from = between_.find(last);
    const bool is_known = from != between_.end() && from->second.contains(next);
    KZERO_REQUIRE(is_known, ExitCode::usage,
                  "{}: has no text between \"{}\" and \"{}\": the system may speak first, then the "
                  "user and the assistant take turns, and the user is last",
                  file_, printable(last), printable(next));
    text += from->second.at(next);
    last = next;
  };
  for (const Message& message : messages) {
    join(message.role);
    text += strips_.contains(message.role) ? stripped(message.content)
                                           : std::string_view(message.content);
  }
  join("ask");
  return text;
}

}  // namespace kzero::infer
