// Names the arithmetic of a training run.
#pragma once

#include <string>

namespace kzero::tensor {
class Gemm;
}

namespace kzero::engine {

/// Returns this program's arithmetic on this machine: the kernels' compiler and instruction set,
/// the device or host, the GEMM library, and the model's part (`model`, may be empty). Equal decks
/// with different arithmetic agree to rounding.
std::string arithmetic_of(const tensor::Gemm& gemm, const std::string& model);

}  // namespace kzero::engine
