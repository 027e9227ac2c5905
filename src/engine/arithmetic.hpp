// Names the arithmetic of a training run.
#pragma once

#include <string>

namespace kzero::tensor {
class Gemm;
}

namespace kzero::engine {

/// Returns the arithmetic of this program on this machine: compiler and instruction set of the
/// kernels, device or host, GEMM library, and the model's part (`model`, may be empty). Equal decks
/// with different arithmetic agree to rounding.
std::string arithmetic_of(const tensor::Gemm& gemm, const std::string& model);

}  // namespace kzero::engine
