// Where sums of gradients are kept between the micro-batches of a step, if the deck leaves it open
// (zero.gradients = "auto"), and advice on what nodes send to each other.
#pragma once

#include <string>
#include <vector>

#include "deck/config.hpp"
#include "engine/blueprint.hpp"

namespace kzero::engine {

/// Returns the bytes that a rank holds of parameters, gradients and optimizer state, without sums.
/// The layouts, stage and optimizer of the blueprint are used.
Index model_state_bytes(const deck::Config& config, const Blueprint& blueprint);

/// Returns the bytes of the sums that a rank keeps between micro-batches.
Index kept_sum_bytes(const zero::SumPlan& sums, const param::FlatLayout& layout);

/// Plans the sums. "auto" lets nodes keep them if every rank has full gradients anyway, or if the
/// planned bytes of sums then grow by at most half of the model states that a rank holds. This is a
/// function of deck and grid alone, so a run chooses as its plan does; no bit depends on it.
zero::SumPlan plan_sums(const deck::Config& config, const Blueprint& blueprint,
                        const zero::SumShape& shape);

/// Returns which settings would let nodes send each sum of gradients, and each parameter, once a
/// step. Empty if they do, if there is one node, or if no setting would.
std::vector<std::string> node_notes(const deck::Config& config, const Blueprint& blueprint);

}  // namespace kzero::engine
