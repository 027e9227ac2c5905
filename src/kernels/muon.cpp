#include "kernels/muon.hpp"

namespace kzero::kernels {

namespace {

template <class T>
constexpr float largest_finite = dtype_of<T> == Dtype::fp16 ? 65504.0F : 0x1.FEp127F;

/// Fixes which product of a sum is fused with the addition. Compilers may choose differently for a
/// vector body and its remainder, and where a part begins depends on the run.
template <class T>
struct MomentumOfElement {
  MuonMomentum step;
  MuonArrays<T> at;

  KOKKOS_INLINE_FUNCTION void operator()(Index i) const {
    const float g =
        step.one_minus_momentum * (static_cast<float>(at.gradient[i]) * step.gradient_scale);
    const float m = Kokkos::fma(step.momentum, at.momentum[i], g);
    const float scaled = step.scale * (step.nesterov ? Kokkos::fma(step.momentum, m, g) : m);
    constexpr float max = largest_finite<T>;
    at.momentum[i] = m;
    at.u[i] = static_cast<T>(scaled > max ? max : scaled < -max ? -max : scaled);
  }
};

}  // namespace

template <class T>
void muon_momentum(const Execution& exec, const MuonMomentum& step, const MuonArrays<T>& arrays,
                   Index count) {
  const MomentumOfElement<T> element{step, arrays};
  for_element_blocks(
      "kzero::kernels::muon_momentum", exec, count,
      KOKKOS_LAMBDA(const Team& team, Index begin, Index n) {
        for_each(team, n, [=](Index i) { element(begin + i); });
      });
}

template <class T>
void muon_momentum(HostCores cores, const MuonMomentum& step, const MuonArrays<T>& arrays,
                   Index count) {
  const MomentumOfElement<T> element{step, arrays};
  for_element_blocks(
      "kzero::kernels::muon_momentum_on_host", cores, count,
      [=](Index begin, Index n) { detail::host_for(n, [=](Index i) { element(begin + i); }); });
}

#define KZERO_INSTANTIATE(T)                                                                  \
  template void muon_momentum<T>(const Execution&, const MuonMomentum&, const MuonArrays<T>&, \
                                 Index);                                                      \
  template void muon_momentum<T>(HostCores, const MuonMomentum&, const MuonArrays<T>&, Index);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
