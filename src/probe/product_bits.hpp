// The bits of products as a run computes them, for comparing ranks.
#pragma once

#include <string>

#include "deck/config.hpp"
#include "tensor/gemm.hpp"

namespace kzero::probe {

/// Computes products as wide as the deck's model in its precision, and digests their bits to
/// sixteen hexadecimal digits. Equal digests make it likely, not certain, that a run's bits are
/// equal, because libraries choose kernels by shape.
std::string product_bits(const tensor::Execution& exec, tensor::Gemm& gemm,
                         const deck::Config& config);

}  // namespace kzero::probe
