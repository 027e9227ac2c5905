// Sums of numbered terms in an order that any division of the terms among ranks and nodes can keep.
// Blocks of consecutive terms are added one after another. Sums of blocks are added in pairs, the
// results in pairs again, and so on: a binary tree. A range of blocks that is a subtree can
// therefore be added anywhere.
#pragma once

#include <bit>
#include <cstdint>

#include "base/types.hpp"

namespace kzero::kernels {

/// Which terms of a sum some are: term `first` and the next ones, whose number is given apart. The
/// last block of the sum may have fewer than `block` terms.
struct Terms {
  Index first = 0;
  Index block = 1;
  bool ends = true;  // no terms follow
};

/// The number of open sums after n terms: a block that is not full, and the subtrees that wait for
/// a subtree of the same size.
inline int open_sums(Index n, Index block) {
  return std::popcount(static_cast<std::uint64_t>(n / block)) + (n % block > 0 ? 1 : 0);
}

/// More sums than can be open at a time.
inline constexpr int max_open_sums = 32;

}  // namespace kzero::kernels
