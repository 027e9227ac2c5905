// The tokenizer of a model: files in the folder of its weights or of its training data, since a
// checkpoint does not contain any.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deck/config.hpp"

namespace kzero::convert {

inline constexpr const char* tokenizer_name = "tokenizer.json";

/// Returns the tokenizer.json that `given` names, itself or its folder. If none is given, returns
/// the one in `folder`, otherwise the first one in the folder of a data file that a deck names;
/// paths are resolved as for training. Returns an empty path if there is none. Throws Error(files)
/// if the given one does not exist, or for a link that leads out of its folder (model_file.hpp).
/// Not collective.
std::filesystem::path find_tokenizer(const std::string& given, const std::filesystem::path& folder,
                                     const deck::Data& data);

/// Facts from a tokenizer.json and the tokenizer_config.json in the same folder.
struct TokenizerFacts {
  Index tokens = 0;  // one more than the largest id
  /// bos_token_id, eos_token_id and pad_token_id, as far as the configuration names them.
  nlohmann::json token_ids = nlohmann::json::object();
};

/// Throws Error(files) if either file is not JSON of its kind.
TokenizerFacts read_tokenizer_facts(const std::filesystem::path& tokenizer);

/// The files of a tokenizer in `folder`: tokenizer.json, tokenizer_config.json and others. Throws
/// Error(files) for a link that leads out of the folder (model_file.hpp).
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& folder);

}  // namespace kzero::convert
