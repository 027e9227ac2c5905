// Exports a checkpoint's weights as a Hugging Face model: a folder that transformers can open, or a
// file of weights with config.json in the same folder.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/folder/search.hpp"
#include "convert/origin.hpp"
#include "convert/weights.hpp"

namespace kzero::convert {

inline constexpr Index default_shard_bytes = 5'000'000'000;  // transformers' max_shard_size was 5GB

/// The files of an export.
struct ExportTarget {
  std::filesystem::path weights;  // in a folder: the name of a single file
  std::filesystem::path config;
  bool is_folder = true;
};

struct ExportOptions {
  Dtype dtype = Dtype::fp32;
  Index shard_bytes = default_shard_bytes;  // limit of a file of weights in a folder
  Origin origin{};
};

/// Resolves a target. A name that ends in .safetensors is a file, unless it is an existing folder.
/// Any other name is a folder. Throws Error(usage) if it names another existing file.
ExportTarget export_target(const std::filesystem::path& to);

/// The values of an export or a new checkpoint: where they are from, and a check after all of them
/// were read once.
struct ExportSource {
  std::string from;  // their file or folder, for messages
  /// Their model, with model.router_aux_loss, which a config.json has, too.
  deck::Model model;
  std::vector<checkpoint::Parameter> parameters;
  std::function<void(const checkpoint::Parameter&, checkpoint::Range, std::span<float>)> read;
  std::function<void()> finish = [] {};  // throws Error(files) if the values must not be used
};

/// The model of a checkpoint. A manifest has only the keys that define the function of the weights.
/// The factor of the loss that balances experts is that of the checkpoint's deck.
deck::Model model_of(const checkpoint::Manifest& manifest);

/// A state array of the checkpoint. `found` must outlive the source.
ExportSource checkpoint_weights(const checkpoint::Found& found, const std::string& array);

/// The weights of files, which have the parameters of the table. `weights` must outlive the source.
ExportSource file_weights(const Weights& weights, const std::string& path, const deck::Model& model,
                          const param::Table& table);

/// Writes the source's values, rounded to nearest, and config.json. A few MiB of memory suffice for
/// weights of any size. A folder also gets generation_config.json and the origin's tokenizer;
/// weights above `shard_bytes` become several files with an index. Names of tensors have no prefix,
/// with one exception: in a GPT-2 whose output projection is not tied they start with
/// "transformer.", because that tensor would not be understood otherwise. A missing folder is
/// created. Returns the names of the files for people (ExportFiles::names).
///
/// Replaces only files that an earlier kzero export wrote. At each moment config.json is missing or
/// belongs to the weights in its folder, and a name refers to an old file or a complete new one.
/// Throws Error(files) if other files are in the way, for a model that no class of transformers
/// computes, for weights that are not finite or do not fit the type, and if the disk is full. Not
/// collective.
std::vector<std::string> export_weights(const ExportSource& source, const ExportTarget& target,
                                        const ExportOptions& options = {});

/// The same of the checkpoint's master weights.
std::vector<std::string> export_weights(const checkpoint::Found& found, const ExportTarget& target,
                                        const ExportOptions& options = {});

}  // namespace kzero::convert
