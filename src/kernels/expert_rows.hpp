// Rows of tokens to rows sorted by expert, and back. Results are added to a token in the order of
// its choices, without atomics. kernels/routing.hpp sorts.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Copies to sorted [M,D] the row of x [n,D] that each of the first M choices belongs to. Padding
/// rows become 0. `choices` is that of SortedChoices.
template <class T>
void gather_rows(const Execution& exec, Matrix<const T> x, Vector<const std::int32_t> choices,
                 Index per_token, Matrix<T> sorted);

/// Computes y [n,D] = addend + sum over j of gates_j * sorted[places_j], added in this order in
/// fp32. places [n,k]; empty: row i of y has row i of sorted alone. gates [n,k], or empty if all
/// are 1. addend [n,D], or empty if there is none;
/// y may be addend.
template <class T>
void combine_rows(const Execution& exec, Matrix<const T> sorted, Matrix<const std::int32_t> places,
                  Matrix<const float> gates, Matrix<const T> addend, Matrix<T> y);

/// Computes dgates [n,k], and the inputs of the products that follow. On entry the first f columns
/// of d [M, >= f] have the gradient of `activated` [M,f] without the factor of the gates: dgates of
/// a choice is the sum of d * activated over its row, in an order that depends on f alone. Then
/// multiplies both d and `activated` by the gate. Padding rows stay as they are. If `choices` is
/// empty, row i has choice i.
template <class T>
void gate_backward(const Execution& exec, Vector<const std::int32_t> choices,
                   Matrix<const float> gates, Matrix<T> activated, Matrix<T> d,
                   Matrix<float> dgates);

}  // namespace kzero::kernels
