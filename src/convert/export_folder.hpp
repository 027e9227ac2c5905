// The folder of an export: which files may be replaced, and in which order, so that a crash leaves
// the old model, the new model, or none.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "convert/export.hpp"
#include "convert/safetensors_writer.hpp"
#include "convert/shards.hpp"

namespace kzero::convert {

/// Everything that an export writes except the values of the weights.
struct ExportFiles {
  std::vector<WeightShard> shards;
  std::string index;       // empty: a single file of weights
  std::string config;      // texts
  std::string generation;  // empty: not written
  std::vector<checkpoint::OriginFile> tokenizer{};

  /// The names for people, the weights first; if there are several files of weights, the first and
  /// last.
  std::vector<std::string> names() const;
};

/// Throws Error(files) if the export would destroy or contradict the work of others. Changes
/// nothing.
void require_free(const ExportTarget& target, const ExportFiles& files);

/// Creates the folder and its parents, and waits until they are on the disk.
void make_folder(const std::filesystem::path& folder);

/// Gives complete weights their names, removes files of an earlier export that do not belong to
/// them, and writes the other files, config.json last. The writers are those of files.shards.
void put_in_place(const ExportTarget& target, const ExportFiles& files,
                  const std::vector<std::unique_ptr<SafetensorsWriter>>& writers);

/// The folder that contains the file.
std::filesystem::path folder_of(const std::filesystem::path& file);

}  // namespace kzero::convert
