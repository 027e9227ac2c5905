// AdamW (Loshchilov and Hutter, arXiv 1711.05101): decoupled weight decay, bias-corrected moments.
// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w = w (1 - lr decay) - lr (m/c1) / (sqrt(v/c2) +
// eps).
#pragma once

#include "kernels/element_update.hpp"

namespace kzero::kernels {

/// The rule of one step. Its state: master weight, first and second moment.
struct AdamWStep {
  static constexpr int arrays = 3;

  float lr = 0;
  float beta1 = 0, beta2 = 0;
  float one_minus_beta1 = 1,
        one_minus_beta2 = 1;  // 1 - beta, subtracted in fp64: in fp32 0.999 leaves 5e-5 of error
  float eps = 0;
  float decay = 0;           // 0 for parameters without decay
  bool cautious = false;     // see kept_of()
  float correction1 = 1;     // 1 - beta1^t
  float correction2 = 1;     // 1 - beta2^t
  float gradient_scale = 1;  // unscaling and clipping in one factor

  KOKKOS_INLINE_FUNCTION void operator()(float gradient, float (&state)[arrays]) const {
    float &w = state[0], &m = state[1], &v = state[2];
    const float g = gradient * gradient_scale;
    m = Kokkos::fma(beta1, m, one_minus_beta1 * g);
    v = Kokkos::fma(beta2, v, one_minus_beta2 * g * g);
    const float step = lr * (m / correction1) / (Kokkos::sqrt(v / correction2) + eps);
    w = Kokkos::fma(w, kept_of(Kokkos::fma(-lr, decay, 1.0F), cautious, step, w), -step);
  }
};

template <class T>
using AdamWArrays = UpdateArrays<T, AdamWStep::arrays>;

// Compiled once, in adamw.cpp.
#define KZERO_INSTANTIATE(T)                                                                \
  extern template void update_parts<T>(const Execution&, const UpdateTable<T, AdamWStep>&); \
  extern template void update_parts<T>(HostCores, const UpdateTable<T, AdamWStep>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
