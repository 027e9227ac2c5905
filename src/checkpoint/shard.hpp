// Writes one shard file: by one rank alone, which needs no message, or by several together through
// MPI-IO. What is written was read back when these return.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/piece.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

/// What a rank has to say of the shard it took part in.
struct LocalPart {
  Shard shard;                       // of the whole file; without a name where another rank tells
  std::uint64_t parameter_hash = 0;  // of this rank's pieces
};

/// The file's name in a checkpoint.
std::string shard_name(Index number);

/// Throws Error(files), naming the file, for a disk that takes no more or gives back other bytes.
LocalPart write_shard(const std::filesystem::path& folder, const std::string& name,
                      const std::vector<Parameter>& parameters, std::span<const Piece> mine);

/// The pieces of all ranks of `group` in one file. The group's first rank sets up the HDF5 file
/// with all its metadata and takes the space; then all write their values together. Throws the same
/// Error on every rank. Collective over `group`.
LocalPart write_shared_shard(const grid::Group& group, const std::filesystem::path& folder,
                             const std::string& name, const std::vector<Parameter>& parameters,
                             std::span<const Piece> mine);

}  // namespace kzero::checkpoint
