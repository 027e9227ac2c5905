// A model's tensors divided over files, as transformers does it. The data-parallel shards of a run
// are another matter.
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

/// Fills one file after another with tensors, in order, up to `limit` bytes of data; a larger
/// tensor has a file of its own. One file has the name `single`, several have numbers.
std::vector<WeightShard> divide(const SafetensorsWriter::Shapes& tensors, Dtype dtype, Index limit,
                                const std::string& single);

/// The index of several files: which tensor is in which, and the bytes of all.
std::string index_text(const std::vector<WeightShard>& shards, Dtype dtype);

/// Returns whether it is the name of one of several files: model-00001-of-00002.safetensors.
bool is_shard_name(const std::string& name);

/// Returns whether a regular file at `path` holds a text of index_text().
bool is_index_of_kzero(const std::filesystem::path& path);

}  // namespace kzero::convert
