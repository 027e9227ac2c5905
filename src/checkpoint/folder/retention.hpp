// The checkpoints in a folder by name, and which of them are kept. step_00001000 is complete once
// it has its manifest. step_00001000.MARK.partial is being written or removed by the one process
// that knows the mark. `.replaced` is the old checkpoint of a step that is being written again.
#pragma once

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "checkpoint/format/manifest.hpp"

namespace kzero::checkpoint {

/// Formats the name of a step's checkpoint: "step_00001000".
std::string folder_name(Index step);

/// Appends a suffix to the last name of a path.
std::filesystem::path with_suffix(std::filesystem::path path, const char* suffix);

/// Returns a new name for a checkpoint that is being written or removed, with a unique mark.
std::filesystem::path partial_path(const std::filesystem::path& folder, Index step);

/// Throws Error(files) if the name is that of another step's checkpoint (complete or `.replaced`).
void require_named_after(const std::filesystem::path& checkpoint, Index step);

/// Throws Error(usage) if `folder` is a checkpoint itself.
void require_folder_of_checkpoints(const std::filesystem::path& folder);

/// Returns the candidates for a checkpoint, best first: `folder` itself if it holds a manifest,
/// else its step folders by descending step. Empty if the folder does not exist. Throws
/// Error(files) if it cannot be listed.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& folder);

/// Removes the remains of interrupted writes and removals. An old checkpoint gets its name back if
/// its replacement is missing. Only for the single process that writes into the folder
/// (FolderLock).
void remove_stale(const std::filesystem::path& folder);

/// Gives `partial` its final name and replaces a checkpoint of that step. At every time a complete
/// one exists.
void install(const std::filesystem::path& partial, const std::filesystem::path& target);

/// The last step whose loss is known to have been within its range, for checkpoints that do not
/// record it. No checkpoint is later than this step.
inline constexpr Index every_step = std::numeric_limits<Index>::max();

/// Returns the manifest's record of that step, or every_step.
Index sane_step_of(const Manifest& manifest);

/// Returns the manifest of a checkpoint that is complete by its names and sizes.
std::optional<Manifest> manifest_if_complete(const std::filesystem::path& path);

/// Returns whether a checkpoint is sane: the loss of its last step was within its range, a later
/// step showed that the loss of its own weights was too, and the last step was not skipped.
/// `sane_step` is the last step with a loss within the range, as known now.
bool is_sane(const Manifest& manifest, Index sane_step);

/// Returns the newest complete and sane checkpoint up to step `newest`, if there is one.
std::optional<std::filesystem::path> newest_sane(const std::filesystem::path& folder, Index newest,
                                                 Index sane_step);

/// The checkpoints of a folder that stay.
struct Keep {
  // Not explicit: most callers keep the newest alone.
  Keep(Index last_ones, Index multiple = 0) : newest(last_ones), every(multiple) {}

  Index newest;  // number of the newest; 0: all
  Index every;   // also the first one at or after each multiple of this number of steps; 0: none
};

/// Keeps the last `keep.newest` checkpoints up to step `newest`, and those of `keep.every`, and
/// removes the others. Only counts checkpoints with a manifest and shard files of the right sizes.
/// Always keeps that of `newest`. A checkpoint whose last step was skipped may belong to a
/// diverging training: it displaces no other, and is removed when enough good ones are newer. The
/// newest sane checkpoint always stays, so there may be one more; with `keep.newest` = 1 there
/// usually is. Later steps, which another run left, and damaged folders stay. Returns messages
/// about removals that failed.
std::vector<std::string> retain(const std::filesystem::path& folder, Index newest, Keep keep,
                                Index sane_step = every_step);

}  // namespace kzero::checkpoint
