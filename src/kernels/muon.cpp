#include "kernels/muon.hpp"

#include <algorithm>

namespace kzero::kernels {

namespace {

constexpr Index muon_block = 4096;  // elements that a team, or a host thread at a time, takes

template <class T>
constexpr float largest_finite = dtype_of<T> == Dtype::fp16 ? 65504.0F : 0x1.FEp127F;

/// Which product of a sum is fused with the addition is said here: compilers may choose differently
/// for the elements of a vector and those that remain, and where a part begins depends on the run.
template <class T>
struct MomentumOfElement {
  MuonMomentum step;
  MuonArrays<T> at;

  KOKKOS_INLINE_FUNCTION void operator()(Index i) const {
    const float g =
        step.one_minus_momentum * (static_cast<float>(at.gradient[i]) * step.gradient_scale);
    const float m = Kokkos::fma(step.momentum, at.momentum[i], g);
    const float scaled = step.scale * (step.nesterov ? Kokkos::fma(step.momentum, m, g) : m);
    constexpr float most = largest_finite<T>;
    at.momentum[i] = m;
    at.u[i] = static_cast<T>(scaled > most ? most : scaled < -most ? -most : scaled);
  }
};

}  // namespace

template <class T>
void muon_momentum(const Execution& exec, const MuonMomentum& step, const MuonArrays<T>& arrays,
                   Index count) {
  const MomentumOfElement<T> element{step, arrays};
  Kokkos::parallel_for(
      "kzero::kernels::muon_momentum",
      Policy(exec, static_cast<int>(ceil_div(count, muon_block)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index begin = team.league_rank() * muon_block;
        for_each(team, Kokkos::min(Index{muon_block}, count - begin),
                 [=](Index i) { element(begin + i); });
      });
}

template <class T>
void muon_momentum_on_host(const MuonMomentum& step, const MuonArrays<T>& arrays, Index count) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const MomentumOfElement<T> element{step, arrays};
  const Host host;
  Kokkos::parallel_for(
      "kzero::kernels::muon_momentum_on_host",
      Kokkos::RangePolicy<Host, Kokkos::IndexType<Index>>(host, 0, ceil_div(count, muon_block)),
      [=](Index number) {
        const Index begin = number * muon_block;
        detail::host_for(std::min(muon_block, count - begin), [=](Index i) { element(begin + i); });
      });
  host.fence("kzero::kernels::muon_momentum_on_host");
}

#define KZERO_INSTANTIATE(T)                                                                  \
  template void muon_momentum<T>(const Execution&, const MuonMomentum&, const MuonArrays<T>&, \
                                 Index);                                                      \
  template void muon_momentum_on_host<T>(const MuonMomentum&, const MuonArrays<T>&, Index);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
