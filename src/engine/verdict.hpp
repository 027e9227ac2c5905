// Compares several computations of a micro-batch to find the ranks that computed wrongly. Does not
// depend on how the results were obtained.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace kzero::engine {

/// One computation of a micro-batch by a data-parallel rank. Each tensor rank has a word for the
/// loss, then one per unit's gradient in the order in which backward completes them.
struct Computed {
  Index data_rank = 0;
  std::vector<std::vector<std::uint64_t>> words{};  // of each tensor rank
};

enum class Evidence {
  outvoted,   // at least two other ranks have the same result
  unstable,   // the rank has several results
  undecided,  // any of the ranks may be wrong
};

struct Verdict {
  Evidence evidence = Evidence::undecided;
  std::vector<Index> wrong{};         // data-parallel ranks (all if undecided)
  std::vector<Index> right{};         // the ranks that outvoted them
  Index place = 0;                    // position of the first word that differs
  std::vector<Index> tensor_ranks{};  // the ranks whose words differ there
};

/// Judges two or more computations. At least two of them must differ. Names the tensor ranks whose
/// words differ first, because the next sum over tensor ranks spreads a difference to all of them.
Verdict judge(std::span<const Computed> all);

}  // namespace kzero::engine
