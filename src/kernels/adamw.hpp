// AdamW (Loshchilov and Hutter, arXiv 1711.05101): decoupled weight decay, bias-corrected moments.
// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w = w (1 - lr decay) - lr (m/c1) / (sqrt(v/c2) +
// eps).
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

struct AdamWStep {
  float lr = 0;
  float beta1 = 0, beta2 = 0;
  float one_minus_beta1 = 1,
        one_minus_beta2 = 1;  // 1 - beta, subtracted in fp64: in fp32 0.999 leaves 5e-5 of error
  float eps = 0;
  float decay = 0;           // 0 if the parameter does not decay
  float correction1 = 1;     // 1 - beta1^t
  float correction2 = 1;     // 1 - beta2^t
  float gradient_scale = 1;  // unscaling and clipping in one factor
};

/// The arrays of an update, n elements each: the gradient; master weights and moments, updated in
/// fp32; and the weights rounded to T, which are the master weights themselves in an fp32 run.
template <class T>
struct AdamWArrays {
  const T* gradient = nullptr;
  float* master = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  T* parameters = nullptr;

  KOKKOS_INLINE_FUNCTION AdamWArrays operator+(Index n) const {
    return {gradient + n, master + n, first + n, second + n, parameters + n};
  }
};

namespace detail {

KOKKOS_INLINE_FUNCTION void update_element(const AdamWStep& s, float gradient, float& w, float& m,
                                           float& v) {
  const float g = gradient * s.gradient_scale;
  m = s.beta1 * m + s.one_minus_beta1 * g;
  v = s.beta2 * v + s.one_minus_beta2 * g * g;
  const float step = s.lr * (m / s.correction1) / (Kokkos::sqrt(v / s.correction2) + s.eps);
  w = w * (1.0F - s.lr * s.decay) - step;
}

/// Updates `count` neighbouring elements, which are read and written as packs.
template <int count, class T>
KOKKOS_INLINE_FUNCTION void update_pack(const AdamWStep& s, const AdamWArrays<T>& at) {
  const auto gradient = read_pack<count>(at.gradient);
  auto w = read_pack<count>(at.master), m = read_pack<count>(at.first),
       v = read_pack<count>(at.second);
  Pack<T, count> rounded;
  for (int e = 0; e < count; ++e) {
    update_element(s, static_cast<float>(gradient.values[e]), w.values[e], m.values[e],
                   v.values[e]);
    rounded.values[e] = static_cast<T>(w.values[e]);
  }
  write_pack(at.first, m);
  write_pack(at.second, v);
  write_pack(at.master, w);
  write_pack(at.parameters, rounded);
}

/// Updates n elements as devices do: 16 bytes of fp32 at once where an array begins at a multiple
/// of that.
template <class T>
KOKKOS_INLINE_FUNCTION void device_update(const Team& team, const AdamWStep& s, Index n,
                                          const AdamWArrays<T>& a) {
  constexpr int count = 4;
  const Index packs = n / count, done = packs * count;
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, packs),
                       [&](Index pack) { update_pack<count>(s, a + pack * count); });
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, n - done),
                       [&](Index i) { update_pack<1>(s, a + (done + i)); });
}

}  // namespace detail

/// Updates elements [0, count) of arrays in device memory.
template <class T>
void adamw(const Execution& exec, const AdamWStep& step, const AdamWArrays<T>& arrays, Index count);

/// Updates the same elements on the host's cores, whatever the device of the build; the arrays are
/// in host memory. Returns when the update is complete.
template <class T>
void adamw_on_host(const AdamWStep& step, const AdamWArrays<T>& arrays, Index count);

}  // namespace kzero::kernels
