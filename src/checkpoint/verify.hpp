// Compares the files of a checkpoint with its manifest, byte for byte, without the HDF5 library:
// damaged bytes are named before anything tries to make sense of them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/files.hpp"
#include "checkpoint/manifest.hpp"

namespace kzero::checkpoint {

/// Where a shard's datasets lie in its file: three regions a piece, in order.
std::vector<Region> regions_of(const Shard& shard);

/// What `scan`, made of the shard's file at `path` with regions_of(shard), shows to be damaged; one
/// message a file or dataset. Empty: all is well.
std::vector<std::string> problems_of(const std::filesystem::path& path,
                                     const std::vector<Parameter>& parameters, const Shard& shard,
                                     const Scan& scan);

/// Reads the shard's file in `folder` and says what is wrong with it.
std::vector<std::string> verify_shard(const std::filesystem::path& folder,
                                      const std::vector<Parameter>& parameters, const Shard& shard);

}  // namespace kzero::checkpoint
