// The origin of a model: the files of the Hugging Face folder that its weights or its architecture
// are from, and its tokenizer. A folder of checkpoints keeps them (checkpoint/folder/origin.hpp).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "checkpoint/folder/origin.hpp"
#include "checkpoint/folder/search.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

using checkpoint::Origin;

inline constexpr const char* generation_name = "generation_config.json";

/// The first folder with a config.json: that of `weights`, if given, of model.initial, or of
/// model.config. Empty if none has one. Not collective.
std::filesystem::path model_folder(const deck::Model& model, const std::string& weights = "");

/// Reads what the model of a deck brings. config.json and generation_config.json are those of
/// model_folder(). The tokenizer is that folder's, except in a training on files that have another
/// tokenizer.json in their folder: that one has made the model's tokens. What prepare.py wrote
/// there about the end of answers comes first. `weights` are converted without a training; their
/// own tokenizer always counts. In a training on bytes the model has no tokenizer. A tokenizer that
/// cannot be the model's is left out, with a note. Throws Error(files) for files that cannot be
/// read or are too large, and for a generation_config.json that is not a JSON object. Not
/// collective.
Origin gather_origin(const deck::Config& config, const std::string& weights = "");

/// The origin of a checkpoint: the files that it keeps. Checkpoints of earlier versions keep none;
/// theirs is gathered from the folders that the deck names, and a note tells if that fails. Throws
/// Error(files) if a file that is kept is damaged. Not collective.
Origin origin_of(const checkpoint::Found& found);

/// Replaces the tokenizer by the one that `given` names, and token ids by those that its
/// configuration names. Throws Error(files) if it does not exist, is not called tokenizer.json,
/// cannot be read, or has more tokens than `vocab`. Not collective.
void set_tokenizer(Origin& origin, const std::string& given, Index vocab);

/// bos_token_id, eos_token_id and pad_token_id: of config.json, of generation_config.json, or
/// without a config.json those that the tokenizer's configuration names. Values that are not ids
/// are left out.
nlohmann::json token_ids(const Origin& origin);

}  // namespace kzero::convert
