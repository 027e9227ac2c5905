// Prepares a shard for a file: checks it, hashes it, and describes it by HDF5 groups, datasets and
// attributes. Its callers write the values, and agree with the other writers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/parameter_hash.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

/// The record of a shard, without offsets, and its hash (parameter_hash.hpp).
struct Prepared {
  StoredShard record;
  std::uint64_t hash = 0;
};

/// Checks a non-empty shard against the manifest's parameters and state arrays, and computes its
/// checksums. Throws Error(other).
Prepared prepare(const StateShard& shard, const Positions& positions,
                 const param::StateArrays& arrays);

/// Creates a parameter's group, datasets and attributes, and sets the offsets in the records of its
/// parts. There is one part per rank that has any; parts are contiguous in each dataset.
void create_datasets(storage::Hdf5File& file, const Parameter& parameter,
                     const param::StateArrays& arrays, std::span<StoredShard* const> parts);

// Serializes a shard file's record as a message between ranks.

std::string pack(const ShardFile& shard_file);
ShardFile unpack(const std::string& bytes, std::string file);

}  // namespace kzero::checkpoint
