// Activations of the form x * sigmoid(z(x)). Their derivative is sigmoid(z) * (1 + excess), where
// the excess is x * (1 - sigmoid(z)) * z'(x). V is float or a vector of floats.
#pragma once

#include "kernels/sigmoid.hpp"

namespace kzero::kernels {

/// silu(x) = x * sigmoid(x).
struct Silu {
  template <class V>
  static KOKKOS_INLINE_FUNCTION Sigmoid<V> factor(V x) {
    return Sigmoid<V>(x);
  }
  template <class V>
  static KOKKOS_INLINE_FUNCTION V excess(V x, const Sigmoid<V>& s) {
    return x * s.complement;
  }
};

/// GELU in its tanh form: (1 + tanh(z / 2)) / 2 = sigmoid(z).
struct Gelu {
  static constexpr float slope = 2 * 0.7978845608F;  // 2 sqrt(2 / pi)
  static constexpr float cubic = 0.044715F;

  template <class V>
  static KOKKOS_INLINE_FUNCTION Sigmoid<V> factor(V x) {
    return Sigmoid<V>(slope * (x + cubic * x * x * x));
  }
  template <class V>
  static KOKKOS_INLINE_FUNCTION V excess(V x, const Sigmoid<V>& s) {
    const V inner = slope * (1.0F + 3.0F * cubic * x * x);
    return x * s.complement * inner;
  }
};

}  // namespace kzero::kernels
