// The tokenizer of a model: files that stand beside its weights or beside the data that it was
// trained on, since a checkpoint holds none.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "deck/config.hpp"

namespace kzero::convert {

inline constexpr const char* tokenizer_name = "tokenizer.json";

/// Returns the tokenizer.json that `given` names, itself or its folder; without one given, that in
/// `folder`, or else the first beside one of the data files that a deck names, paths being as for a
/// training. An empty path if there is none. Throws Error(files) if the given one does not exist.
/// Not collective.
std::filesystem::path find_tokenizer(const std::string& given, const std::filesystem::path& folder,
                                     const deck::Data& data);

/// Facts of a tokenizer.json and the tokenizer_config.json beside it.
struct TokenizerFacts {
  Index tokens = 0;  // one more than the largest id
  /// bos_token_id, eos_token_id and pad_token_id, those that the configuration names.
  nlohmann::json token_ids = nlohmann::json::object();
};

/// Throws Error(files) if either is no JSON of its kind.
TokenizerFacts read_tokenizer_facts(const std::filesystem::path& tokenizer);

/// The files of a tokenizer that lie in `folder`: tokenizer.json, tokenizer_config.json and others.
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& folder);

}  // namespace kzero::convert
