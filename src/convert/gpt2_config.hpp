// config.json of a GPT-2 model: Hugging Face's description of the function beside the weights.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/manifest.hpp"

namespace kzero::convert {

/// Throws Error(files) unless config.json describes the function that kzero computes from the
/// weights with `model`: architecture, activation, attention's scale, heads, sizes, epsilon; all
/// differences at once, with the deck's keys. A missing key has the meaning that Hugging Face gives
/// it. Dropout, which only changes the training, is not checked.
void require_same_function(const std::filesystem::path& config,
                           const checkpoint::ModelShape& model);

/// The config.json of such a model, marked as written by kzero.
std::string gpt2_config(const checkpoint::ModelShape& model);

/// Returns whether a regular file at `path` holds a text of gpt2_config().
bool is_config_of_kzero(const std::filesystem::path& path);

}  // namespace kzero::convert
