// Facts about this binary, for logs and for comparisons of runs and ranks.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kzero::runtime {

/// All that the kernels' rounding depends on: their compiler, the instruction set it compiled for,
/// and further instructions that they use if the processor has them.
std::string kernel_arithmetic();

/// Version, git hash, compiler, build type and device backend, in printing order.
std::vector<std::pair<std::string, std::string>> build_facts();

}  // namespace kzero::runtime
