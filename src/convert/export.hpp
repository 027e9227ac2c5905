// Exports a checkpoint's weights as a model of Hugging Face: a folder that transformers opens, or a
// file of weights with config.json beside it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/search.hpp"
#include "convert/origin.hpp"

namespace kzero::convert {

inline constexpr Index usual_shard_bytes = 5'000'000'000;  // transformers' max_shard_size was 5GB

/// The files of an export.
struct ExportTarget {
  std::filesystem::path weights;  // a folder's, if they are one file
  std::filesystem::path config;
  bool is_folder = true;
};

struct ExportOptions {
  Dtype dtype = Dtype::fp32;
  Index shard_bytes = usual_shard_bytes;  // of a file of weights in a folder
  Origin origin{};
};

/// Resolves a target: a name that ends in .safetensors is a file, unless it is a folder already;
/// any other is a folder. Throws Error(usage) for the name of another file.
ExportTarget export_target(const std::filesystem::path& to);

/// Writes the checkpoint's master weights, rounded to nearest, and config.json, with a few MiB of
/// memory for a model of any size; into a folder also generation_config.json and the origin's
/// tokenizer, and weights above `shard_bytes` as several files with an index. Names of tensors are
/// plain, but start with "transformer." in a GPT-2 whose output projection is not tied, without
/// which that one tensor would not be understood. A missing folder is created. Returns the names
/// of the files for people (ExportFiles::names).
///
/// Replaces only what an export of kzero wrote before; at each moment config.json is missing or
/// belongs to the weights beside it, and a name has an old file or a complete new one. Throws
/// Error(files) for files of others in the way, a model that no class of transformers computes,
/// weights that are not finite or do not fit the type, and a disk that is full. Not collective.
std::vector<std::string> export_weights(const checkpoint::Found& found, const ExportTarget& target,
                                        const ExportOptions& options = {});

}  // namespace kzero::convert
