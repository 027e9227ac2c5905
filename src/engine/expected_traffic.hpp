// A rank's expected and counted traffic per step.
#pragma once

#include "comm/traffic.hpp"
#include "engine/blueprint.hpp"
#include "metrics/records.hpp"

namespace kzero::engine {

/// How often a rank sends each element of its shards in one collective of the data group: within
/// its node and to other nodes, in the run's precision and in fp32.
struct Copies {
  Index within = 0, between = 0, between_fp32 = 0;
};

/// The rows of one chunk of a micro-batch, and the chunks that a rank computes.
struct MicroBatchRows {
  Index chunk = 0, chunks = 1;
};
MicroBatchRows micro_batch_rows(const deck::Config& config);

/// The ranks of a data rank's sequence group on other nodes. `nodes` has the node of each data
/// rank.
Index remote_sequence_ranks(const data::BatchPlan& plan, Index data_rank,
                            std::span<const int> nodes);

/// The copies of a round's sum of gradients (zero/reduction.hpp) on a rank that has a micro-batch
/// in it. `remote` ranks of its group are on other nodes.
Copies sum_copies(const zero::SumPlan& sums, Index round, Index remote);

/// The copies of a gather of one shard from each rank. Regular nodes receive each shard once.
Copies gather_copies(const zero::SumPlan& sums, Index remote);

/// The copies of a scheduled gather of parameters, of each element that a rank holds, and of an
/// all-gather of updated ones. With a copy per node the first stays in the node and the second only
/// leaves it. If nodes share gathered units, the first only leaves it.
Copies parameter_copies(const Blueprint& blueprint, Index remote);
Copies update_copies(const Blueprint& blueprint, Index remote);

/// Returns the expected traffic of the blueprint's rank per step, including padding. The data group
/// follows arXiv 1910.02054, section 7. The tensor group follows section 8 and, for sequence
/// parallelism, arXiv 2205.05198; the sequence group, arXiv 2309.14509. elements_per_step and
/// bytes_per_step stay 0. The deck must be resolved. `data_rank` is the rank in the data group,
/// used for matrices only (matrix_plan.hpp).
std::vector<metrics::TrafficRow> expected_traffic(const deck::Config& config,
                                                  const Blueprint& blueprint, Index data_rank = 0);

/// Returns the mean over a number of steps. `steps[p]` of them belong to the blueprint's phase p.
std::vector<metrics::TrafficRow> expected_traffic(const deck::Config& config,
                                                  const Blueprint& blueprint,
                                                  std::span<const Index> steps, Index data_rank);

/// Adds the counted traffic to the expected rows. A channel's traffic is averaged over the steps
/// that used it, because skipped steps do not gather updated parameters.
std::vector<metrics::TrafficRow> counted(const comm::Traffic& traffic,
                                         std::vector<metrics::TrafficRow> rows);

}  // namespace kzero::engine
