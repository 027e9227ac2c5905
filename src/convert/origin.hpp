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

/// Gives the origin another tokenizer: the one that `given` names, or, if it has none, one that
/// stands beside the data that the deck names (find_tokenizer). Token ids that its configuration
/// names replace the origin's. Throws Error(files) if the given one does not exist, is called
/// otherwise than tokenizer.json, cannot be read, or has more tokens than model.vocab; one that was
/// only found is then left out, with a note. Not collective.
void add_tokenizer(Origin& origin, const std::string& deck, const std::string& given);

/// Looks in the folder of model.initial, else in that of model.config, of a resolved deck; of a
/// deck with neither the answer is empty. Relative paths are as for a training. Throws nothing for
/// folders that are gone or damaged, which become the note. Not collective.
Origin find_origin(const std::string& deck);

}  // namespace kzero::convert
