// This rank's peak: the speed of a large square GEMM in the run's precision while all ranks run. It
// is the denominator of MFU.
#pragma once

#include "deck/config.hpp"
#include "grid/process_grid.hpp"
#include "metrics/records.hpp"
#include "tensor/gemm.hpp"

namespace kzero::engine {

/// Chooses the width of the product's matrices. On a device, they are wide enough to hide a
/// kernel's launch, unless one product would take a second, as without a GEMM library. The same on
/// every rank. Collective over `world`.
Index choose_peak_width(const grid::Group& world, const tensor::Execution& exec, tensor::Gemm& gemm,
                        Dtype precision);

/// Returns the peak of all ranks, from the deck or from a measured square product, which takes some
/// tenths of a second. Collective over `world`, all ranks.
metrics::Peak find_peak(const deck::Config& config, const grid::Group& world, tensor::Gemm& gemm);

}  // namespace kzero::engine
