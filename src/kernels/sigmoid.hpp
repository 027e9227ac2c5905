// The logistic function, of activations and routers.
#pragma once

#include "kernels/exponential.hpp"

namespace kzero::kernels {

/// sigmoid(z) = 1 / (1 + e^-z), and 1 - sigmoid(z) without cancellation. Finite for every finite z.
/// Below -88 the value stays at e^-88, which is less than 2^-126. V is float or a vector of floats.
template <class V>
struct Sigmoid {
  V value, complement;

  explicit KOKKOS_INLINE_FUNCTION Sigmoid(V z) {
    const V e = saturating_exponential(-z);
    value = 1.0F / (1.0F + e);
    complement = e * value;
  }
};

}  // namespace kzero::kernels
