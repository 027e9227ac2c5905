// Identity of this binary, for logs, checkpoints and `kzero --version`.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kzero {

std::string version();
std::string git_hash();

/// All that the kernels' rounding depends on: their compiler, the instruction set it compiled for,
/// and further instructions that they use if the processor has them.
std::string kernel_arithmetic();

/// Version, git hash, compiler, build type and device backend, in printing order.
std::vector<std::pair<std::string, std::string>> build_facts();

}  // namespace kzero
