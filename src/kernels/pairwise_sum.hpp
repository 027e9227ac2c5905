// Kernels for the sums of numbered terms whose order sum_order.hpp specifies.
#pragma once

#include "kernels/reduction.hpp"
#include "kernels/sum_order.hpp"

namespace kzero::kernels {

/// Device memory for the open sums of every element: the sums of subtrees that wait for a subtree
/// of the same size. The oldest, of the largest subtree, may be stored apart from the others;
/// number i > 0 begins at others + (i - 1) * stride.
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
void add_terms(const Execution& exec, const RankValues<T>& values, const Terms& terms,
               const OpenSums& open, Vector<Out> out);

}  // namespace kzero::kernels
