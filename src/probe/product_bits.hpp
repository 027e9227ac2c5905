// The bits of products as a run computes them, for comparing ranks.
#pragma once

#include <string>

#include "deck/config.hpp"
#include "tensor/gemm.hpp"

namespace kzero::probe {

/// Computes products as wide as the deck's model in its precision, and returns a digest of their
/// bits in sixteen hexadecimal digits. Equal digests make it likely, but not certain, that all bits
/// of a run are equal, because libraries choose kernels by shape.
std::string product_bits(const tensor::Execution& exec, tensor::Gemm& gemm,
                         const deck::Config& config);

}  // namespace kzero::probe
