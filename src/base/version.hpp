// Identity of this binary, for logs, checkpoints and `kzero --version`.
#pragma once

#include <string>

namespace kzero {

std::string version();
std::string git_hash();

/// The host's compiler and its version.
std::string compiler();

/// CMake's build type.
std::string build_type();

}  // namespace kzero
