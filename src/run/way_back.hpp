// Names the newest checkpoint from before a run's loss left its range, and the command that goes
// back to it.
#pragma once

#include <filesystem>
#include <string>

#include "run/loss_range.hpp"

namespace kzero::run {

/// Returns whether the loss of the last of `steps_done` steps was beyond its range.
bool has_left_range(const LossRange& losses, Index steps_done);

/// Returns one line for a run after `steps_done` steps: where the loss left its range, if it did,
/// the newest sane checkpoint, and the shell command that moves later ones away. Empty if the
/// folder's name is empty. Throws Error(files) if the folder cannot be listed.
std::string way_back(const std::filesystem::path& folder, Index steps_done,
                     const LossRange& losses);

/// Quotes a path for a shell if needed.
std::string shell_word(const std::filesystem::path& path);

}  // namespace kzero::run
