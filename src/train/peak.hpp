// This rank's peak: what the product library reaches on a large square product in the run's
// precision, with all ranks at it at once. The denominator of MFU.
#pragma once

#include "tensor/gemm.hpp"

namespace kzero::train {

/// Operations a second; takes some tenths of a second.
double measure_peak(const tensor::Execution& exec, tensor::Gemm& gemm, Dtype precision);

}  // namespace kzero::train
