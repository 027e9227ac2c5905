#include "kernels/adamw.hpp"

#include <algorithm>

namespace kzero::kernels {

namespace {

constexpr Index block = 4096;  // elements a team, or a host thread at a time, updates

}  // namespace

template <class T>
void adamw(const Execution& exec, const AdamWStep& step, const AdamWArrays<T>& arrays,
           Index count) {
  const AdamWStep s = step;
  const AdamWArrays<T> all = arrays;
  Kokkos::parallel_for(
      "kzero::kernels::adamw", Policy(exec, static_cast<int>(ceil_div(count, block)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index begin = team.league_rank() * block;
        // A copy of block: on a device the constant itself has no address for min to take.
        for_each(team, Kokkos::min(Index{block}, count - begin),
                 [=](Index i) { all.update(s, begin + i); });
      });
}

template <class T>
void adamw_on_host(const AdamWStep& step, const AdamWArrays<T>& arrays, Index count) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const Host host;
  Kokkos::parallel_for("kzero::kernels::adamw_on_host",
                       Kokkos::RangePolicy<Host>(host, 0, ceil_div(count, block)),
                       [=](Index number) {
                         const AdamWArrays<T> part = arrays + number * block;
                         detail::host_for(std::min(block, count - number * block),
                                          [&](Index i) { part.update(step, i); });
                       });
  host.fence("kzero::kernels::adamw_on_host");
}

#define KZERO_INSTANTIATE(T)                                                                \
  template void adamw<T>(const Execution&, const AdamWStep&, const AdamWArrays<T>&, Index); \
  template void adamw_on_host<T>(const AdamWStep&, const AdamWArrays<T>&, Index);
KZERO_INSTANTIATE(float)
KZERO_INSTANTIATE(bf16)
KZERO_INSTANTIATE(fp16)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
