// The time of a step whose messages overlap with its work exactly where the run's do.
#pragma once

#include <vector>

#include "base/timeline.hpp"
#include "plan/plan.hpp"

namespace kzero::plan {

/// Returns the seconds of all messages of a step, one after another. Gathers within a step, sums,
/// activations and matrices are included, copies between device and host are not.
double message_seconds(const StepOutline& outline, const Network& network);

struct StepTime {
  double seconds = 0;
  Waits waits{};
};

/// Returns the time of a step that does the work of `parts`. Replays the operations of a step on
/// one rank and its links, within the node, between nodes and to the host (simulated_rank.hpp).
/// Messages of a tensor group delay the operation that needs them (with
/// StepOutline::tensor_overlaps by what the operation does not hide), but not the messages that are
/// in flight. Additions of received gradients cost nothing. `spans`, if any, receives the step's
/// time line. Of the micro-batches the first three and the last are in it.
StepTime step_time(const StepOutline& outline, const Network& network, const Estimate& parts,
                   std::vector<SpanRecord>* spans = nullptr);

/// Estimates the step of an entry: the slowest of its outlines. `network.node_ranks` is not used:
/// the entry knows its nodes.
Estimate estimate(const Entry& entry, const Rates& rates, const Network& network);

/// Returns the time line of the step that estimate() returns.
std::vector<SpanRecord> time_line(const Entry& entry, const Rates& rates, const Network& network);

}  // namespace kzero::plan
