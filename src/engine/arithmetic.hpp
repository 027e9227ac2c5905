// The name of the arithmetic that a training computes with.
#pragma once

#include <string>

namespace kzero::tensor {
class Gemm;
}

namespace kzero::engine {

/// Returns the arithmetic of this program on this machine: compiler and instructions of the
/// kernels, device or host, the GEMM library, and what the model adds (`model`; may be empty). Runs
/// of equal decks whose arithmetic differs agree to rounding.
std::string arithmetic_of(const tensor::Gemm& gemm, const std::string& model);

}  // namespace kzero::engine
