// Compares the files of a checkpoint with its manifest, byte for byte, without the HDF5 library.
// Damaged bytes are therefore reported before anything parses them.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/input_file.hpp"
#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/wanted_shards.hpp"

namespace kzero::checkpoint {

/// Returns the checksum of the bytes between the shards of a shard file: HDF5's own structure.
std::uint64_t structure_of(const InputFile& file, const ShardFile& shard_file);

/// Lists the shards' datasets in the file that do not match their checksums, with one message each
/// and the manifest's names. Fills the shards that `wanted_shards` wants in stored form, damaged or
/// not.
std::vector<std::string> damage_of(const InputFile& file, const std::filesystem::path& path,
                                   const Manifest& manifest, std::span<const StoredShard> shards,
                                   WantedShards& wanted_shards);

/// Throws Error(files) for the first damage. Used to check a file that was just written.
void require_undamaged(const InputFile& file, const std::filesystem::path& path,
                       const Manifest& manifest, std::span<const StoredShard> shards);

/// One of `parts` roughly equal parts of a file's shards, for ranks that divide the reading.
struct Slice {
  Index part = 0;
  Index parts = 1;
};

/// Reads a slice of the shard file in `folder` and returns its problems, with one message per file
/// or dataset. Size and structure belong to the first slice. `wanted_shards` as for damage_of().
std::vector<std::string> verify_shard(const std::filesystem::path& folder, const Manifest& manifest,
                                      const ShardFile& shard_file, Slice slice,
                                      WantedShards& wanted_shards);

}  // namespace kzero::checkpoint
