// A rank's expected and counted traffic per step.
#pragma once

#include "comm/traffic.hpp"
#include "engine/blueprint.hpp"
#include "metrics/records.hpp"

namespace kzero::engine {

/// Returns the expected traffic of the blueprint's rank per step, including padding. The data group
/// follows arXiv 1910.02054, section 7. The tensor group follows section 8 and, for sequence
/// parallelism, arXiv 2205.05198. elements_per_step and bytes_per_step stay 0. The deck must be
/// resolved. `data_rank` is the rank in the data group, used for matrices only (matrix_plan.hpp).
std::vector<metrics::TrafficRow> expected_traffic(const deck::Config& config,
                                                  const Blueprint& blueprint, Index data_rank = 0);

/// Adds the counted traffic to the expected rows. A channel's traffic is averaged over the steps
/// that used it, because skipped steps do not gather updated parameters.
std::vector<metrics::TrafficRow> counted(const comm::Traffic& traffic,
                                         std::vector<metrics::TrafficRow> rows);

}  // namespace kzero::engine
