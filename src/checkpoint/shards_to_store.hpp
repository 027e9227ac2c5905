// A rank's shards on their way into a file: checked, hashed, and laid out for HDF5. Knows nothing
// of who else writes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/hdf5_file.hpp"
#include "checkpoint/parameter_hash.hpp"

namespace kzero::checkpoint {

/// What a rank will write: the shards that hold something, beside their records without places.
struct Prepared {
  std::vector<const StateShard*> shards;
  std::vector<StoredShard> records;
  std::uint64_t parameter_hash = 0;
};

/// Takes all checksums. The shards have the state arrays `arrays` and must outlive the result.
Prepared prepare(std::span<const StateShard> mine, const Positions& positions,
                 const param::StateArrays& arrays);

/// Group and attributes of a parameter whose parts, one for each rank that holds some, follow one
/// another in its datasets.
void describe_parameter(Hdf5File& file, const Parameter& parameter,
                        std::span<const StoredShard* const> parts);

/// The checksums of a dataset's parts, as its attribute.
void describe_state(Hdf5File& file, const std::string& dataset, std::size_t array,
                    std::span<const StoredShard* const> parts);

}  // namespace kzero::checkpoint
