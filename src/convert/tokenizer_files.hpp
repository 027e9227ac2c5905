// The tokenizer of a model: files in its folder, in the origin of its checkpoints, or in the folder
// of its training data.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/folder/origin.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

inline constexpr const char* tokenizer_name = "tokenizer.json";
inline constexpr const char* chat_parts_name = "chat_parts.json";  // of input/prepare_chat_parts.py

/// Returns the tokenizer.json that `given` names, itself or its folder. If none is given, returns
/// the one in `folder`, otherwise the first one in the folder of a data file that a deck names;
/// paths are resolved as for training. Returns an empty path if there is none. Throws Error(files)
/// if the given one does not exist, or for a link that leads out of its folder (model_file.hpp).
/// Not collective.
std::filesystem::path find_tokenizer(const std::string& given, const std::filesystem::path& folder,
                                     const deck::Data& data);

/// Facts from a tokenizer.json and the tokenizer_config.json that belongs to it.
struct TokenizerFacts {
  Index tokens = 0;  // one more than the largest id; 0 without a tokenizer.json
  /// bos_token_id, eos_token_id and pad_token_id, as far as the configuration names them.
  nlohmann::json token_ids = nlohmann::json::object();
};

/// Throws Error(files) if either file is not JSON of its kind; `shown` is their folder in messages.
TokenizerFacts tokenizer_facts(const checkpoint::Origin& origin, const std::string& shown);

/// The texts of a tokenizer's tokens by id. Throws Error(files) as tokenizer_facts does.
std::map<Index, std::string> token_texts(const checkpoint::Origin& origin);

/// The files of a tokenizer in `folder`: tokenizer.json, tokenizer_config.json, chat templates and
/// others, sorted by name. Throws Error(files) if one cannot be read, is too large, or is a link
/// that leads out of the folder (model_file.hpp).
std::vector<checkpoint::OriginFile> tokenizer_files(const std::filesystem::path& folder);

}  // namespace kzero::convert
