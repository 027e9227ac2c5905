// The JSON files of an export, in addition to the weights.
#pragma once

#include <filesystem>
#include <string>

#include "base/types.hpp"
#include "convert/origin.hpp"
#include "deck/config.hpp"

namespace kzero::convert {

/// Returns Hugging Face's name of the type: "float32", "bfloat16" or "float16".
std::string_view long_name(Dtype dtype);

/// config.json of a model, which transformers 4 and 5 can open, marked as written by kzero. Token
/// ids are the origin's, otherwise null, except for GPT-2's own vocabulary. Throws Error(files) for
/// a model that no class computes; `checkpoint` is for the message.
std::string config_text(const deck::Model& model, Dtype dtype, const Origin& origin,
                        const std::string& checkpoint);

/// generation_config.json of a model, marked in the same way.
std::string generation_text(const deck::Model& model, const Origin& origin);

/// Returns whether a regular file at `path` contains a text of these functions.
bool is_json_of_kzero(const std::filesystem::path& path);

}  // namespace kzero::convert
