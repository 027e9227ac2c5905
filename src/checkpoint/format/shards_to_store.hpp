// A rank's shards prepared for a file: checked, hashed, and with their groups and attributes for
// HDF5. It does not know the other writers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/format/parameter_hash.hpp"
#include "storage/hdf5_file.hpp"

namespace kzero::checkpoint {

/// The shards that a rank will write: those that are not empty, with their records, offsets
/// excluded.
struct Prepared {
  std::vector<const StateShard*> shards;
  std::vector<StoredShard> records;
  std::uint64_t parameter_hash = 0;
};

/// Takes all checksums. The shards have the state arrays `arrays` and must outlive the result.
Prepared prepare(std::span<const StateShard> mine, const Positions& positions,
                 const param::StateArrays& arrays);

/// Creates group and attributes of a parameter whose parts, one for each rank that has some, are
/// contiguous in its datasets.
void describe_parameter(storage::Hdf5File& file, const Parameter& parameter,
                        std::span<const StoredShard* const> parts);

/// Writes the checksums of a dataset's parts as its attribute.
void describe_state(storage::Hdf5File& file, const std::string& dataset, std::size_t array,
                    std::span<const StoredShard* const> parts);

}  // namespace kzero::checkpoint
