// Which ranks computed a micro-batch wrongly, by the results of several computations of it. Does
// not know where the results come from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace kzero::engine {

/// One computation of a micro-batch by a data-parallel rank. Each of its tensor ranks has a word
/// for the loss and then one for the gradient of each unit, in the order in which backward
/// completes them.
struct Computed {
  Index data_rank = 0;
  std::vector<std::vector<std::uint64_t>> words{};  // of each tensor rank
};

/// The evidence for a verdict.
enum class Evidence {
  outvoted,   // at least two other ranks have the same result
  unstable,   // the same rank has several results
  undecided,  // any of the ranks may be wrong
};

struct Verdict {
  Evidence evidence = Evidence::undecided;
  std::vector<Index> wrong{};         // data-parallel ranks; all of them if undecided
  std::vector<Index> right{};         // those that outvoted them
  Index place = 0;                    // of the first word that differs
  std::vector<Index> tensor_ranks{};  // whose words differ there
};

/// Judges two or more computations of which at least two differ. A difference spreads from the
/// tensor rank that made it to all others with the next sum over them, so those whose words differ
/// first are named.
Verdict judge(std::span<const Computed> all);

}  // namespace kzero::engine
