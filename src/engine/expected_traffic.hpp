// The traffic of a rank in a step: expected and counted.
#pragma once

#include "comm/traffic.hpp"
#include "engine/blueprint.hpp"
#include "metrics/records.hpp"

namespace kzero::engine {

/// Returns the expected traffic of the blueprint's rank in a step, including padding: over its data
/// group as in arXiv 1910.02054, section 7, over its tensor group as in its section 8 (and arXiv
/// 2205.05198 for sequence parallelism). elements_per_step and bytes_per_step are left 0. The deck
/// is resolved. `data_rank`, the rank in its data group, matters to matrices alone
/// (matrix_plan.hpp).
std::vector<metrics::TrafficRow> expected_traffic(const deck::Config& config,
                                                  const Blueprint& blueprint, Index data_rank = 0);

/// Returns the traffic counted in steps beside the expected traffic: the mean of those steps that
/// used a channel (a skipped step updates no parameters).
std::vector<metrics::TrafficRow> counted(const comm::Traffic& traffic,
                                         std::vector<metrics::TrafficRow> rows);

}  // namespace kzero::engine
