// Writes one shard file: by one rank alone, without messages, or by several ranks through MPI-IO.
// This is step 2 of a save (writer.hpp), in four parts:
//
//   a collect   checksums, parameter hash and places of this rank's shards
//   b write     the structure of the file and the values
//   c verify    reads back and compares what was written, while the disk writes it
//   d sync      the file is on the disk
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "base/input_file.hpp"
#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

/// A rank's record of the shard file to which it contributed.
struct LocalPart {
  ShardFile shard_file;              // of the full file; no name if another rank reports it
  std::uint64_t parameter_hash = 0;  // of this rank's shards
};

/// The file's name in a checkpoint.
std::string shard_file_name(Index number);

/// Part c: reads back this rank's shards `own` of a written file, while the disk writes it. Throws
/// Error(files) that names file and dataset if the bytes differ from those written.
void verify_written(const InputFile& written, const std::filesystem::path& path,
                    const Manifest& manifest, std::span<const StoredShard> own);

/// Sets the size of the written file, and the checksum of the bytes between its shards.
void describe_file(const InputFile& written, ShardFile& shard_file);

/// Writes a rank's shards to its own file. Throws Error(files) that names the file if the disk is
/// full or returns other bytes.
LocalPart write_shard_file(const std::filesystem::path& folder, const std::string& name,
                           const Manifest& manifest, std::span<const StateShard> mine);

/// Writes the shards of all ranks of `group` to one file. The group's first rank creates the HDF5
/// file with all its metadata and reserves the space. Then all write their values collectively.
/// Throws the same Error on every rank. Collective over `group`.
LocalPart write_shared_shard_file(const grid::Group& group, const std::filesystem::path& folder,
                                  const std::string& name, const Manifest& manifest,
                                  std::span<const StateShard> mine);

}  // namespace kzero::checkpoint
