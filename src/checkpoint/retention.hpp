// The checkpoints in a folder by their names, and which of them stay. Names: step_00001000 is
// complete once it has its manifest; step_00001000.MARK.partial is being written or removed by the
// one process that knows the mark; `.replaced` is the old checkpoint of a step that is being
// written again.
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

/// A new name for a checkpoint that is being written or removed, with a mark that is in no other.
std::filesystem::path partial_path(const std::filesystem::path& folder, Index step);

/// Throws Error(files) for the name of a checkpoint (complete or `.replaced`) of another step.
void require_named_after(const std::filesystem::path& checkpoint, Index step);

/// Throws Error(usage) if `folder` is a checkpoint itself.
void require_folder_of_checkpoints(const std::filesystem::path& folder);

/// Where to look for a checkpoint, best first: `folder` itself if it holds a manifest, else its
/// step folders by falling step. Empty if there is no such folder. Throws Error(files) if it cannot
/// be listed.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& folder);

/// Removes what interrupted writes and removals left behind; an old checkpoint whose replacement
/// never came gets its name back. For the only process that writes into the folder (FolderLock).
void remove_stale(const std::filesystem::path& folder);

/// Gives `partial` its final name, replacing a checkpoint of that step: at every instant a complete
/// one exists.
void install(const std::filesystem::path& partial, const std::filesystem::path& target);

/// Of the checkpoints with manifest and shard_files of the right sizes up to step `newest`, keeps
/// the last `keep` (0: all), always that of `newest`, and removes the others. One whose last step
/// was skipped may be of a training that diverges: it pushes out no other, and goes when enough
/// good ones are newer. Later steps, which another run left, and damaged folders stay. Returns what
/// could not be removed, as messages.
std::vector<std::string> retain(const std::filesystem::path& folder, Index newest, Index keep);

}  // namespace kzero::checkpoint
