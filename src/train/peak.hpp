// This rank's peak: the speed of a large square GEMM in the run's precision, with all ranks running
// at once. The denominator of MFU.
#pragma once

#include "tensor/gemm.hpp"

namespace kzero::train {

/// Returns operations per second; takes some tenths of a second.
double measure_peak(const tensor::Execution& exec, tensor::Gemm& gemm, Dtype precision);

}  // namespace kzero::train
