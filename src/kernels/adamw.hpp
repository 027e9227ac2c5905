// AdamW (Loshchilov and Hutter, arXiv 1711.05101): decoupled weight decay, bias-corrected moments.
// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w = w (1 - lr decay) - lr (m/c1) / (sqrt(v/c2) +
// eps).
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

struct AdamWStep {
  float lr = 0;
  float beta1 = 0, beta2 = 0;
  float rest1 = 1, rest2 = 1;  // 1 - beta, subtracted in fp64: in fp32 0.999 leaves 5e-5 of error
  float eps = 0;
  float decay = 0;           // 0 where the parameter does not decay
  float correction1 = 1;     // 1 - beta1^t
  float correction2 = 1;     // 1 - beta2^t
  float gradient_scale = 1;  // unscaling and clipping in one factor
};

/// What an update reads and writes, n elements each: gradient; master weights and moments, updated
/// in fp32; and the weights rounded to T, which are the master weights themselves in an fp32 run.
template <class T>
struct AdamWArrays {
  const T* gradient = nullptr;
  float* master = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  T* parameters = nullptr;

  AdamWArrays operator+(Index n) const {
    return {gradient + n, master + n, first + n, second + n, parameters + n};
  }

  KOKKOS_INLINE_FUNCTION void update(const AdamWStep& s, Index i) const {
    const float g = static_cast<float>(gradient[i]) * s.gradient_scale;
    const float m = s.beta1 * first[i] + s.rest1 * g;
    const float v = s.beta2 * second[i] + s.rest2 * g * g;
    const float step = s.lr * (m / s.correction1) / (Kokkos::sqrt(v / s.correction2) + s.eps);
    const float w = master[i] * (1.0F - s.lr * s.decay) - step;
    first[i] = m;
    second[i] = v;
    master[i] = w;
    parameters[i] = static_cast<T>(w);
  }
};

/// Updates elements [0, count) of arrays in device memory.
template <class T>
void adamw(const Execution& exec, const AdamWStep& step, const AdamWArrays<T>& arrays, Index count);

/// The same on the host's cores, whatever the device of the build; arrays in host memory. Returns
/// when it is done.
template <class T>
void adamw_on_host(const AdamWStep& step, const AdamWArrays<T>& arrays, Index count);

}  // namespace kzero::kernels
