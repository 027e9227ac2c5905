// The scripts that `kzero completion SHELL` prints.
#pragma once

#include <string>

namespace kzero::app {

/// A script for bash, zsh or fish that calls `kzero __complete` on every tab. The script finds the
/// program as the shell found `program`: by PATH, or by its full path.
std::string script_for(const std::string& shell, const std::string& program);

}  // namespace kzero::app
