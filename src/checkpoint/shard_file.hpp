// Writes one shard file, steps 1 to 4 of a save (writer.hpp): by one rank alone, which needs no
// message, or by several together through MPI-IO.
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

/// Step 3: reads back this rank's shards `own` of a file that is written, while the disk takes it.
/// Throws Error(files), naming file and dataset, where the bytes are not what was written.
void verify_written(const std::filesystem::path& path, const Manifest& manifest,
                    std::span<const StoredShard> own);

/// The size of the written file, and the checksum of what lies between its shards.
void describe_file(const std::filesystem::path& path, ShardFile& shard_file);

/// Throws Error(files), naming the file, for a disk that takes no more or gives back other bytes.
LocalPart write_shard_file(const std::filesystem::path& folder, const std::string& name,
                           const Manifest& manifest, std::span<const StateShard> mine);

/// The shards of all ranks of `group` in one file. The group's first rank sets up the HDF5 file
/// with all its metadata and takes the space; then all write their values together. Throws the same
/// Error on every rank. Collective over `group`.
LocalPart write_shared_shard_file(const grid::Group& group, const std::filesystem::path& folder,
                                  const std::string& name, const Manifest& manifest,
                                  std::span<const StateShard> mine);

}  // namespace kzero::checkpoint
