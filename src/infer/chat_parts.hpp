// The texts that a model's chat template puts around messages. input/prepare_chat_parts.py writes
// them from the template, which is a Jinja program, into a file next to the tokenizer.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>

namespace kzero::infer {

struct Message {
  std::string role;
  std::string content;
};

class ChatParts {
 public:
  /// Throws Error(files) if the file does not exist or is of another kind.
  explicit ChatParts(const std::filesystem::path& file);

  /// The text of a conversation, up to the beginning of the answer. Throws Error(usage) for an
  /// order of messages that the template does not have.
  std::string text(std::span<const Message> messages) const;

 private:
  std::string file_;
  std::map<std::string, std::map<std::string, std::string>> between_{};  // by role, "start", "ask"
  std::set<std::string> strips_{};  // roles whose contents lose white space around them
};

}  // namespace kzero::infer
