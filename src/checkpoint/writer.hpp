// Writes a checkpoint: one HDF5 shard a rank, then the manifest, then the name. Does not know the
// model, the stage or where the numbers come from.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/piece.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

struct Written {
  std::filesystem::path path;           // of the complete checkpoint
  Index bytes = 0;                      // of all its shard files
  std::vector<std::string> problems{};  // in tidying up behind it; on the root only
};

/// Saves every rank's pieces as `folder`/step_<manifest.step>, on the disk and read back before it
/// gets its name, then removes all but the newest `keep` checkpoints (0: keeps all). Together the
/// pieces must cover every parameter of the manifest once. `manifest` is the same on all ranks,
/// less what write() fills in. Throws the same Error on every rank, with the file at fault, if any
/// rank fails: then no trace stays and earlier checkpoints are as they were. Collective over
/// `world`.
Written write(const grid::Group& world, const std::filesystem::path& folder, Manifest manifest,
              std::span<const Piece> mine, Index keep);

}  // namespace kzero::checkpoint
