// The products of a mixture of experts: each expert multiplies its own sorted rows by its own
// weight. On hosts the sum of an element has one order, that of the inner dimension, for any number
// of rows and at any place: a row's bits do not depend on the other rows, nor on the number of
// threads. No library keeps this (docs/decisions.md). Devices call the GEMM library, expert by
// expert.
#pragma once

#include <span>

#include "kernels/row.hpp"
#include "tensor/gemm.hpp"

namespace kzero::kernels {

/// An expert's sorted rows [first, first + rows), and its weight or the gradient of it.
template <class W>
struct ExpertRows {
  Index first = 0, rows = 0;
  W* weight = nullptr;
};

/// The extents of an expert's weight in memory.
struct WeightShape {
  Index rows = 0, columns = 0;
};

/// Computes the rows of y = x op(W_e) for each expert. The first columns of x [M, >= k] are read,
/// and those of y [M, >= n] are written. op(W) is [k,n], summed in fp32 and rounded once.
template <class T>
void expert_products(const Execution& exec, tensor::Gemm& gemm,
                     std::span<const ExpertRows<const T>> experts, const WeightShape& shape,
                     tensor::Transpose transpose, Matrix<const T> x, Matrix<T> y);

/// Computes (=|+=) the gradient of each expert's weight: the sum over its rows of a_r^T b_r, in
/// fp32 and rounded once. An expert without rows has 0. The gradient has the first `rows` columns
/// of a [M, >= rows] as rows, and the first `columns` of b [M, >= columns]. Out is T or float.
template <class T, class Out>
void expert_gradients(const Execution& exec, tensor::Gemm& gemm,
                      std::span<const ExpertRows<Out>> experts, const WeightShape& shape,
                      Matrix<const T> a, Matrix<const T> b, tensor::Accumulate accumulate);

}  // namespace kzero::kernels
