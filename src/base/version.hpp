// Identity of this binary, for logs, checkpoints and `kzero --version`.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kzero {

std::string version();
std::string git_hash();

/// The compiler of the kernels, the instructions for which it compiled them and those that they
/// take where a processor has them: what their rounding depends on.
std::string kernel_arithmetic();

/// Version, git hash, compiler, build type and device backend, in printing order.
std::vector<std::pair<std::string, std::string>> build_facts();

}  // namespace kzero
