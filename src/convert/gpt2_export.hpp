// Exports a checkpoint's weights as a GPT-2 model of Hugging Face: model.safetensors and
// config.json.
#pragma once

#include <filesystem>

#include "checkpoint/search.hpp"

namespace kzero::convert {

/// The files of an export: the weights, and config.json beside them.
struct ExportTarget {
  std::filesystem::path weights;
  std::filesystem::path config;
};

/// Resolves a target: a name that ends in .safetensors is a file, unless it is a folder already;
/// any other is a folder. Throws Error(usage) for the name of another file.
ExportTarget export_target(const std::filesystem::path& to);

/// Writes the checkpoint's master weights as float32, and config.json, with a few MiB of memory for
/// a model of any size. Tensor names are plain; if the output projection is not tied they start
/// with "transformer.", without which that one tensor would not be understood. A missing folder is
/// created.
///
/// Replaces only what an export of kzero wrote before; at each moment config.json is missing or
/// belongs to the weights beside it. Throws Error(files) for files of others in the way, weights
/// that are not finite, and a disk that is full. Not collective.
void export_gpt2(const checkpoint::Found& found, const ExportTarget& target);

}  // namespace kzero::convert
