// The files of a model's weights, as Hugging Face arranges them: one safetensors file, or several
// with an index that lists the file of each tensor. It opens no weights.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::convert {

inline constexpr const char* weights_name = "model.safetensors";
inline constexpr const char* index_name = "model.safetensors.index.json";
inline constexpr const char* config_name = "config.json";
inline constexpr Index max_config_bytes = Index{1} << 20;  // of a JSON file about the model

/// Returns whether the name exists, even as a dangling link.
bool is_there(const std::filesystem::path& path);

struct WeightFiles {
  std::vector<std::filesystem::path> files;
  std::map<std::string, std::filesystem::path> placed;  // by an index: the file of each tensor
  std::optional<std::filesystem::path> config;          // their config.json, if there is one
};

/// Resolves a safetensors file, the index of a set of files, or a folder with either. Throws
/// Error(files) for a folder with neither or both, and for an index that is malformed or refers to
/// files outside its folder.
WeightFiles find_weight_files(const std::filesystem::path& path);

}  // namespace kzero::convert
