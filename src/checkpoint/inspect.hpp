// Describes checkpoints to people: their contents and their damage. Needs no other rank.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::checkpoint {

/// Returns lines of text with the step, tokens, grid, parameters and shard files of a checkpoint,
/// or of the newest readable one in a folder of checkpoints. Reads manifests only. Throws
/// Error(files) if there is none.
std::string describe(const std::filesystem::path& path);

/// Returns every problem of a checkpoint, or of all in a folder of checkpoints: one message per
/// file or dataset. Reads every byte. Throws Error(files) if `path` has none.
std::vector<std::string> verify(const std::filesystem::path& path);

}  // namespace kzero::checkpoint
