// The expected and the counted traffic of a rank in a step.
#pragma once

#include "comm/traffic.hpp"
#include "engine/blueprint.hpp"
#include "metrics/records.hpp"

namespace kzero::engine {

/// Returns the expected traffic of the blueprint's rank in a step, including padding. The data
/// group follows arXiv 1910.02054, section 7. The tensor group follows its section 8, and arXiv
/// 2205.05198 for sequence parallelism. elements_per_step and bytes_per_step stay 0. The deck must
/// be resolved. `data_rank` is the rank in the data group and affects only matrices
/// (matrix_plan.hpp).
std::vector<metrics::TrafficRow> expected_traffic(const deck::Config& config,
                                                  const Blueprint& blueprint, Index data_rank = 0);

/// Adds the counted traffic to the expected rows. The counts are means over the steps that used the
/// channel, because a skipped step updates no parameters.
std::vector<metrics::TrafficRow> counted(const comm::Traffic& traffic,
                                         std::vector<metrics::TrafficRow> rows);

}  // namespace kzero::engine
