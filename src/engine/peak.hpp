// This rank's peak: the speed of a large square GEMM in the run's precision, with all ranks running
// at once. The denominator of MFU.
#pragma once

#include "deck/config.hpp"
#include "grid/process_grid.hpp"
#include "metrics/records.hpp"
#include "tensor/gemm.hpp"

namespace kzero::engine {

/// The width of the product's matrices.
inline constexpr Index peak_width = tensor::on_host ? 768 : 4096;  // beyond what a launch takes

struct MeasuredPeak {
  double flops_per_second = 0;
  bool is_disturbed = false;  // repetitions differed: something else used the cores
};

/// Multiplies large square matrices; takes some tenths of a second.
MeasuredPeak measure_peak(const tensor::Execution& exec, tensor::Gemm& gemm, Dtype precision);

/// The peak of all ranks: the deck's, or measured. Collective over `world`, all ranks.
metrics::Peak find_peak(const deck::Config& config, const grid::Group& world, tensor::Gemm& gemm);

}  // namespace kzero::engine
