// Digests the bits of products, computed as a run computes them, to compare ranks.
#pragma once

#include <string>

#include "deck/config.hpp"

namespace kzero::tensor {
class Gemm;
}

namespace kzero::probe {

/// Computes products as wide as the deck's model in its precision, and digests their bits: sixteen
/// hexadecimal digits. If digests are equal, all bits of a run are probably equal. This is not
/// certain, because libraries choose their kernels by shape.
std::string product_bits(tensor::Gemm& gemm, const deck::Config& config);

}  // namespace kzero::probe
