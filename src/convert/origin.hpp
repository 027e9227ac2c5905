// The origin of a checkpoint's model: the Hugging Face folder that its deck names. That folder has
// the token ids and the tokenizer, which a checkpoint does not contain.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kzero::convert {

struct Origin {
  nlohmann::json token_ids = nlohmann::json::object();  // bos_token_id and others, if it has them
  std::vector<std::filesystem::path> tokenizer{};       // files in the folder of its config.json
  std::string note{};                                   // what was not found, for people
};

/// Replaces the origin's tokenizer: by the one that `given` names or, without one, by one in the
/// folder of the data that the deck names (find_tokenizer). Token ids named in its configuration
/// replace the origin's. Throws Error(files) if the given tokenizer does not exist, is not called
/// tokenizer.json, cannot be read, or has more tokens than model.vocab. In these cases a tokenizer
/// that was only found is left out, with a note. Not collective.
void add_tokenizer(Origin& origin, const std::string& deck, const std::string& given);

/// Looks in the folder of a resolved deck's model.initial, otherwise in that of model.config. If
/// the deck has neither, the result is empty. Relative paths are resolved as for training. Folders
/// that are missing or damaged are not an error; they become the note. Not collective.
Origin find_origin(const std::string& deck);

}  // namespace kzero::convert
