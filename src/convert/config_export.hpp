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

/// config.json of a model, which transformers 4 and 5 can open, marked as written by kzero. It has
/// every key of the origin's config.json, unless that describes another model. Only the class, the
/// type of the weights, the number of tokens and, with rotary positions, the context are renewed.
/// Without an origin it has the keys that define the model, and the token ids of its tokenizer, or
/// of GPT-2's own vocabulary. Throws Error(files) for a model that no class computes; `checkpoint`
/// is for the message.
std::string config_text(const deck::Model& model, Dtype dtype, const Origin& origin,
                        const std::string& checkpoint);

/// The tokens that the model can read at once, as the config.json of its export has them: with
/// rotary positions those of the origin, or model.sequence if that is larger.
Index context_of(const Origin& origin, const deck::Model& model);

/// generation_config.json: the origin's with a mark, or the token ids. Empty for an origin that has
/// none, because transformers then reads these settings from its config.json.
std::string generation_text(const deck::Model& model, const Origin& origin);

/// Returns whether a regular file at `path` contains a text of these functions.
bool is_json_of_kzero(const std::filesystem::path& path);

}  // namespace kzero::convert
