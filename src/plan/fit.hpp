// Searches what fits into a given memory of a rank: for each ZeRO stage, and each mode of
// recomputation (with tensor ranks also partitioned), the largest micro-batch of the deck's model
// and the deepest model of the deck's width. Whatever the rules of decks refuse is skipped, so a
// stage is searched as soon as it may be set.
#pragma once

#include <utility>
#include <variant>

#include "plan/plan.hpp"

namespace kzero::plan {

enum class Search { micro_batch, layers };

/// The value of a key of the deck.
using Setting = std::variant<Index, bool, std::string>;

/// An entry that fits, and the setting that was searched for it.
struct Answer {
  Search search;
  Entry entry;

  /// Keys of the deck, and the values that give this entry.
  std::vector<std::pair<std::string, Setting>> settings() const;
};

/// A stage that the rules refuse, and why.
struct Refusal {
  Index stage = 0;
  std::string reason;
};

struct Fit {
  std::vector<Answer> answers;
  std::vector<Refusal> refusals;
};

/// Searches variants of `deck`, which is resolved for `ranks`; its stage and mode of recomputation,
/// and then its micro-batch or its layers, are replaced.
/// Micro-batches divide a rank's part of the global batch; layers are searched at the deck's own
/// micro-batch.
Fit fit(const deck::Config& deck, Index ranks, Index threads, Index bytes);

}  // namespace kzero::plan
