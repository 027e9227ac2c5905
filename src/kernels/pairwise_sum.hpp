// Sums of numbered terms in an order that any division of the terms among ranks and nodes can keep.
// Blocks of consecutive terms are added one after another. Sums of blocks are added in pairs, the
// results in pairs again, and so on: a binary tree. A range of blocks that is a subtree can
// therefore be added anywhere.
#pragma once

#include <bit>

#include "kernels/reduction.hpp"

namespace kzero::kernels {

/// Terms [first, first + n) of a sum. The last block may have fewer than `block` terms.
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
inline constexpr int most_open_sums = 32;

/// Memory for open sums in device memory. The oldest, of the largest subtree, may be stored apart
/// from the others; number i > 0 begins at others + (i - 1) * stride.
struct OpenSums {
  float* oldest = nullptr;
  float* others = nullptr;
  Index stride = 0;
};

/// Adds the values of ranks 0, 1, ... as terms first, first + 1, ... in fp32 to the open sums of
/// the terms before `first`. Stores the open sums again or, if the sum ends, rounds it to `out`.
/// `open` is not used if the sum begins and ends with these terms. `out` may be the own values or
/// an open sum, and has as many elements as are summed. Out is T or float, or T is float.
template <class T, class Out>
void add_terms(const Execution& exec, const PerRank<T>& values, const Terms& terms,
               const OpenSums& open, Vector<Out> out);

}  // namespace kzero::kernels
