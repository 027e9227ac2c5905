// Where a checkpoint's model came from: the Hugging Face folder that its deck names, which has what
// a checkpoint does not hold, token ids and the tokenizer.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kzero::convert {

struct Origin {
  nlohmann::json token_ids = nlohmann::json::object();  // bos_token_id and others, if it has them
  std::vector<std::filesystem::path> tokenizer{};       // files that stand beside its config.json
  std::string note{};                                   // what was looked for in vain, for people
};

/// Looks in the folder of model.initial, else in that of model.config, of a resolved deck; of a
/// deck with neither the answer is empty. Relative paths are as for a training. Throws nothing for
/// folders that are gone or damaged, which become the note. Not collective.
Origin find_origin(const std::string& deck);

}  // namespace kzero::convert
