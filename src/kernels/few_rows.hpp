// A linear layer on a few rows, as when a model generates tokens one by one. The weight is read
// once, and its bandwidth is the limit. A row's result does not depend on the other rows or on the
// number of threads. Matrix products of libraries do not promise this.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// The order of a weight in memory: [K,N] or, as its transpose, [N,K].
enum class WeightOrder { in_out, out_in };

/// The operands of y = x W + bias + addend.
template <class T>
struct FewRows {
  Matrix<const T> x;       // [m,K]
  Matrix<const T> weight;  // [K,N] or [N,K]
  WeightOrder order = WeightOrder::in_out;
  const T* bias = nullptr;    // [N], or null
  const T* addend = nullptr;  // [m,N], or null
};

/// Computes y [m,N]. Sums in fp32 in a fixed order and rounds once at the end. Out is T or float. y
/// may be the addend.
template <class T, class Out>
void few_rows_product(const Execution& exec, const FewRows<T>& operands, Matrix<Out> y);

}  // namespace kzero::kernels
