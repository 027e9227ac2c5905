// The elementwise passes in fp32 between the matrix products of a Newton-Schulz iteration
// (optim/newton_schulz.hpp).
#pragma once

#include "kernels/exact_sum.hpp"
#include "kernels/row.hpp"

namespace kzero::kernels {

/// A rectangle in memory whose rows begin `stride` elements apart.
template <class T>
struct Rectangle {
  T* data = nullptr;
  Index stride = 0;
};

template <class T>
void copy_rectangle(const Execution& exec, Index rows, Index columns, Rectangle<const T> from,
                    Rectangle<T> to);

/// Sets *factor = 1 / (sqrt(*squares) + epsilon). Both are in device memory.
void reciprocal_norm(const Execution& exec, const ExactSum* squares, double epsilon, float* factor);

/// Sets x[i] = round(*factor x[i]). The factor is in device memory.
template <class T>
void scale(const Execution& exec, const float* factor, Vector<T> x);

/// Sets sum[i] = factor x[i]. A product is added to it later.
template <class T>
void begin_sum(const Execution& exec, float factor, Vector<const T> x, Vector<float> sum);

/// Sets a[i] = round(b a[i] + c square[i]).
template <class T>
void combine(const Execution& exec, float b, float c, Vector<const float> square, Vector<T> a);

}  // namespace kzero::kernels
