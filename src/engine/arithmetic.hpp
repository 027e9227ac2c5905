// Describes the arithmetic of a training run.
#pragma once

#include <string>

namespace kzero::tensor {
class Gemm;
}

namespace kzero::engine {

/// Returns the arithmetic of this program on this machine: the compiler and instruction set of the
/// kernels, the device or host, the GEMM library, and `model` (may be empty). Runs of equal decks
/// with different arithmetic agree up to rounding errors.
std::string arithmetic_of(const tensor::Gemm& gemm, const std::string& model);

}  // namespace kzero::engine
