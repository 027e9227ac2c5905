// The elementwise halves of Muon (Jordan et al., github.com/KellerJordan/Muon) for hidden matrices.
// The first runs before the iteration of optim/newton_schulz.hpp, which computes X from u; the
// second runs after it.
//   B = mu B + (1 - mu) g;  u = (1 - mu) g + mu B with Nesterov's form, else B
//   w = w kept - rate X
#pragma once

#include "kernels/element_update.hpp"

namespace kzero::kernels {

struct MuonMomentum {
  float momentum = 0, one_minus_momentum = 1;  // subtracted in fp64
  bool nesterov = true;
  float gradient_scale = 1;  // unscaling and clipping in one factor
  float scale = 1;           // factor of u in memory, for types of small range
};

/// The arrays of the first half, n elements each. u may alias the gradient.
template <class T>
struct MuonArrays {
  const T* gradient = nullptr;
  float* momentum = nullptr;
  T* u = nullptr;
};

/// Updates elements [0, count) of the momentum B in fp32, and writes scale u rounded to T. Values
/// that would overflow T become its largest finite value.
template <class T>
void muon_momentum(const Execution& exec, const MuonMomentum& step, const MuonArrays<T>& arrays,
                   Index count);

/// Does the same with arrays in host memory.
template <class T>
void muon_momentum(HostCores cores, const MuonMomentum& step, const MuonArrays<T>& arrays,
                   Index count);

/// The rule of the second half. X is passed as the gradient.
struct MuonRate {
  static constexpr int arrays = 1;

  float rate = 0;  // learning rate times the shape's factor
  float kept = 1;  // factor of a weight, for its decay
  bool cautious = false;

  KOKKOS_INLINE_FUNCTION void operator()(float x, float (&state)[arrays]) const {
    state[0] = Kokkos::fma(-rate, x, state[0] * kept_of(kept, cautious, x, state[0]));
  }
};

}  // namespace kzero::kernels
