// The checkpoints in a folder by their names, and which of them stay. Names: step_00001000 is
// complete once it has its manifest; `.partial` is being written or removed; `.replaced` is the old
// checkpoint of a step that is being written again.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::checkpoint {

/// "step_00001000"
std::string folder_name(Index step);

/// The path with something behind its name.
std::filesystem::path with_suffix(std::filesystem::path path, const char* suffix);

/// Where to look for a checkpoint, best first: `folder` itself if it holds a manifest, else its
/// step folders by falling step. Empty if there is no such folder. Throws Error(files) if it cannot
/// be listed.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& folder);

/// Removes what interrupted writes and removals left behind; an old checkpoint whose replacement
/// never came gets its name back.
void remove_stale(const std::filesystem::path& folder);

/// Gives `partial` its final name, replacing a checkpoint of that step: at every instant a complete
/// one exists.
void install(const std::filesystem::path& partial, const std::filesystem::path& target);

/// Of the checkpoints with manifest and shards of the right sizes up to step `newest`, keeps the
/// last `keep` (0: all), always that of `newest`, and removes the others. Later steps, which
/// another run left, and damaged folders stay. Returns what could not be removed, as messages.
std::vector<std::string> retain(const std::filesystem::path& folder, Index newest, Index keep);

}  // namespace kzero::checkpoint
