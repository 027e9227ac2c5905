// config.json of a GPT-2 model: what Hugging Face says of the function beside the weights.
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/manifest.hpp"

namespace kzero::convert {

/// Throws Error(files) unless config.json describes the function that kzero computes from the
/// weights with `model`: architecture, activation, attention's scale, heads, sizes, epsilon; all
/// differences at once, with the deck's keys. A key that is missing means what Hugging Face takes
/// it to mean. Dropout, which only changes the training, is not looked at.
void require_same_function(const std::filesystem::path& config,
                           const checkpoint::ModelShape& model);

/// The config.json of such a model, marked as written by kzero.
std::string gpt2_config(const checkpoint::ModelShape& model);

/// Whether there is a regular file at `path` that holds a text of gpt2_config().
bool is_config_of_kzero(const std::filesystem::path& path);

}  // namespace kzero::convert
