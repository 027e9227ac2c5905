// Divides a model's tensors over files, as transformers does. These files are unrelated to the
// data-parallel shards of a run.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"
#include "convert/safetensors_writer.hpp"

namespace kzero::convert {

struct WeightShard {
  std::string name;  // within its folder
  SafetensorsWriter::Shapes tensors;
};

/// Fills one file after another with tensors, in order, up to `limit` bytes of data. A larger
/// tensor gets its own file. A single file is named `single`; several files are numbered.
std::vector<WeightShard> divide(const SafetensorsWriter::Shapes& tensors, Dtype dtype, Index limit,
                                const std::string& single);

/// The index of several files: the file of each tensor, and the bytes of all.
std::string index_text(const std::vector<WeightShard>& shards, Dtype dtype);

/// Returns whether the name is that of one of several files: model-00001-of-00002.safetensors.
bool is_shard_name(const std::string& name);

/// Returns whether a regular file at `path` contains a text of index_text().
bool is_index_of_kzero(const std::filesystem::path& path);

}  // namespace kzero::convert
