// Writes one shard file: by one rank alone, which needs no message, or by several together through
// MPI-IO. What is written was read back when these return.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/state_shard.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

/// What a rank has to say of the shard_file it took part in.
struct LocalPart {
  ShardFile shard_file;              // of the whole file; without a name where another rank tells
  std::uint64_t parameter_hash = 0;  // of this rank's shards
};

/// The file's name in a checkpoint.
std::string shard_file_name(Index number);

/// Throws Error(files), naming the file, for a disk that takes no more or gives back other bytes.
LocalPart write_shard_file(const std::filesystem::path& folder, const std::string& name,
                           const std::vector<Parameter>& parameters,
                           std::span<const StateShard> mine);

/// The shards of all ranks of `group` in one file. The group's first rank sets up the HDF5 file
/// with all its metadata and takes the space; then all write their values together. Throws the same
/// Error on every rank. Collective over `group`.
LocalPart write_shared_shard_file(const grid::Group& group, const std::filesystem::path& folder,
                                  const std::string& name, const std::vector<Parameter>& parameters,
                                  std::span<const StateShard> mine);

}  // namespace kzero::checkpoint
