// Proposes settings for a launch of a deck: every grid, ZeRO stage, kind of sharding and kind of
// recomputation that the rules accept, each with the largest micro-batch that a rank's memory
// holds. A larger micro-batch never takes longer: it has fewer messages for the same work. Of kinds
// of sharding that make no difference the simplest is proposed. Offload is proposed where it makes
// room for a larger micro-batch.
#pragma once

#include <functional>
#include <vector>

#include "plan/fit.hpp"
#include "plan/fitter.hpp"

namespace kzero::plan {

struct Proposal {
  Entry entry;        // with its estimate
  Settings settings;  // the deck keys and values that give it
};

/// Adds an estimate to an entry.
using Estimating = std::function<void(Entry&)>;

/// Returns what fits into a rank's memory. Without memory of the host the deck's offloads stay.
/// `deck` is resolved for `ranks` and placed on its nodes; its grid stays.
std::vector<Proposal> proposals(const deck::Config& deck, Index ranks, Index threads,
                                const Room& room, const Estimating& add_estimate);

/// Sorts by the time of a step, the fastest first. Of equal times the first stays first.
void sort_by_time(std::vector<Proposal>& proposals);

}  // namespace kzero::plan
