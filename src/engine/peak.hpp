// The peak of a rank: the speed of a large square GEMM in the run's precision while all ranks run.
// The sum over ranks is the denominator of MFU.
#pragma once

#include "deck/config.hpp"
#include "grid/process_grid.hpp"
#include "metrics/records.hpp"
#include "tensor/gemm.hpp"

namespace kzero::engine {

/// Chooses the width of the square matrices. On a device, they are wide enough to hide the launch
/// of a kernel. If such a product would take over a second, as happens without a GEMM library, they
/// are small. The width is the same on every rank. Collective over `world`.
Index choose_peak_width(const grid::Group& world, const tensor::Execution& exec, tensor::Gemm& gemm,
                        Dtype precision);

/// Returns the summed peak of all ranks, from the deck or from a measurement. The measurement takes
/// a few tenths of a second. Collective over `world`, which contains all ranks.
metrics::Peak find_peak(const deck::Config& config, const grid::Group& world, tensor::Gemm& gemm);

}  // namespace kzero::engine
