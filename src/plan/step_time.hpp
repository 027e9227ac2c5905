// The time of a step whose messages overlap with its work exactly where the run's do.
#pragma once

#include "plan/plan.hpp"

namespace kzero::plan {

/// Returns the seconds of all messages of a step, one after another. Gathers within a step, sums,
/// activations and matrices are included.
double message_seconds(const Outline& outline, const Network& network);

/// Returns the seconds of a step that does the work of `parts`. Replays the operations of a step on
/// one rank and one link, which carries one message at a time. Messages of a tensor group delay the
/// operation that needs them. Additions of received gradients cost nothing.
double step_seconds(const Outline& outline, const Network& network, const Estimate& parts);

/// Estimates the step of an entry: the slowest of its outlines. `network.node_ranks` is not used:
/// the entry knows its nodes.
Estimate estimate(const Entry& entry, const Rates& rates, const Network& network);

}  // namespace kzero::plan
