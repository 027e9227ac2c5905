// Multiplication by a number.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Computes x[i] *= factor in fp32, rounded to T.
template <class T>
void scale_by(const Execution& exec, float factor, Vector<T> x);

}  // namespace kzero::kernels
