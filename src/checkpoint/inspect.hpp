// Describes checkpoints to people: what is inside, and what is wrong with them. Needs no other
// rank.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::checkpoint {

/// Describes step, tokens, grid, parameters and shard_files of a checkpoint, or of the newest
/// readable one in a folder of them, as lines of text. Reads manifests only. Throws Error(files) if
/// there is none.
std::string describe(const std::filesystem::path& path);

/// Returns every problem of the checkpoint, or of all in a folder of them: one message per file or
/// dataset. Reads every byte. Throws Error(files) if there is no checkpoint at all.
std::vector<std::string> verify(const std::filesystem::path& path);

}  // namespace kzero::checkpoint
