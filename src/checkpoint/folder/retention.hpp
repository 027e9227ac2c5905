// The checkpoints in a folder by their names, and which of them are kept. Names: step_00001000 is
// complete once it has its manifest; step_00001000.MARK.partial is being written or removed by the
// one process that knows the mark; `.replaced` is the old checkpoint of a step that is being
// written again.
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

/// Appends a suffix to the name of a path.
std::filesystem::path with_suffix(std::filesystem::path path, const char* suffix);

/// Returns a new name for a checkpoint that is being written or removed, with a unique mark.
std::filesystem::path partial_path(const std::filesystem::path& folder, Index step);

/// Throws Error(files) for the name of a checkpoint (complete or `.replaced`) of another step.
void require_named_after(const std::filesystem::path& checkpoint, Index step);

/// Throws Error(usage) if `folder` is a checkpoint itself.
void require_folder_of_checkpoints(const std::filesystem::path& folder);

/// Returns the candidates for a checkpoint, best first: `folder` itself if it holds a manifest,
/// else its step folders by falling step. Empty if there is no such folder. Throws Error(files) if
/// it cannot be listed.
std::vector<std::filesystem::path> candidates(const std::filesystem::path& folder);

/// Removes what interrupted writes and removals left behind, and gives an old checkpoint its name
/// back if its replacement never came. Only for the single process that writes into the folder
/// (FolderLock).
void remove_stale(const std::filesystem::path& folder);

/// Gives `partial` its final name, replacing a checkpoint of that step: at every instant a complete
/// one exists.
void install(const std::filesystem::path& partial, const std::filesystem::path& target);

/// The last step whose loss is known to have been within its range, for checkpoints that do not
/// record it: no checkpoint is from after it.
inline constexpr Index every_step = std::numeric_limits<Index>::max();

/// Returns what a manifest records of that, or every_step.
Index sane_step_of(const Manifest& manifest);

/// Returns the manifest of a checkpoint that is complete as far as names and sizes tell.
std::optional<Manifest> manifest_if_complete(const std::filesystem::path& path);

/// Returns whether a checkpoint is sane: the loss of its last step was within its range, a later
/// step showed that of its own weights to be, too, and the last step was not skipped. `sane_step`
/// is the last step whose loss was within it, as known now.
bool is_sane(const Manifest& manifest, Index sane_step);

/// Returns the newest complete and sane checkpoint up to step `newest`, if there is one.
std::optional<std::filesystem::path> newest_sane(const std::filesystem::path& folder, Index newest,
                                                 Index sane_step);

/// Keeps the last `keep` checkpoints (0: all) up to step `newest` that have a manifest and
/// shard_files of the right sizes, always including that of `newest`, and removes the others. A
/// checkpoint whose last step was skipped may belong to a training that diverges: it displaces no
/// other, and is removed when enough good ones are newer. The newest sane checkpoint stays in any
/// case, so that there may be one more; with `keep` = 1 there is as a rule. Later steps, which
/// another run left, and damaged folders stay. Returns messages about what could not be removed.
std::vector<std::string> retain(const std::filesystem::path& folder, Index newest, Index keep,
                                Index sane_step = every_step);

}  // namespace kzero::checkpoint
