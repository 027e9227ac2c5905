// Searches for what fits into a rank's memory. For each ZeRO stage and recomputation mode (with
// tensor ranks also partitioned), finds the largest micro-batch of the deck's model, its longest
// sequence, and the deepest model of the deck's width. Skips variants that the deck rules refuse.
#pragma once

#include <utility>
#include <variant>

#include "plan/plan.hpp"

namespace kzero::plan {

enum class Search { micro_batch, sequence, layers };

/// The value of a deck key, and keys with their values.
using Setting = std::variant<Index, bool, std::string>;
using Settings = std::vector<std::pair<std::string, Setting>>;

/// An entry that fits, and the search that found it.
struct Answer {
  Search search;
  Entry entry;

  /// The deck keys and values that give this entry.
  Settings settings() const;
};

/// A stage that the rules refuse, and the reason.
struct Refusal {
  Index stage = 0;
  std::string reason;
};

struct Fit {
  std::vector<Answer> answers;
  std::vector<Refusal> refusals;
};

/// Sorts the answers: those of one search follow each other, the best first. The largest
/// micro-batches are ordered by their tokens per second, sequences and layers by their number and
/// then by their tokens per second. Answers without an estimate keep their order.
void sort(Fit& fit);

/// Searches variants of `deck`, which is resolved for `ranks`. Replaces its stage and recomputation
/// mode, then its micro-batch, its sequence or its layers. Micro-batches divide a rank's part of
/// the global batch. Sequences are searched in micro-batches of one, in steps of 64 tokens of each
/// chunk. Layers are searched at the deck's own micro-batch.
Fit fit(const deck::Config& deck, Index ranks, Index threads, Index bytes);

}  // namespace kzero::plan
