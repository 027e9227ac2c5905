#include "kernels/adamw.hpp"

#include <algorithm>

namespace kzero::kernels {

namespace {

constexpr Index block_elements = 4096;  // elements that a team, or a host thread at a time, updates

template <class T>
void host_update(const AdamWStep& step, Index n, const AdamWArrays<T>& arrays) {
  const AdamWArrays<T> a = arrays;
  detail::host_for(n, [=](Index i) {  // element by element: compilers do not vectorize packs
    float w = a.master[i], m = a.first[i], v = a.second[i];
    detail::update_element(step, static_cast<float>(a.gradient[i]), w, m, v);
    a.first[i] = m;
    a.second[i] = v;
    a.master[i] = w;
    a.parameters[i] = static_cast<T>(w);
  });
}

template <class T>
KOKKOS_INLINE_FUNCTION void team_update(const Team& team, const AdamWStep& step, Index n,
                                        const AdamWArrays<T>& arrays) {
  if constexpr (tensor::on_host) {
    host_update(step, n, arrays);
  } else {
    detail::device_update(team, step, n, arrays);
  }
}

}  // namespace

template <class T>
void adamw(const Execution& exec, const AdamWStep& step, const AdamWArrays<T>& arrays,
           Index count) {
  const AdamWStep s = step;
  const AdamWArrays<T> all = arrays;
  Kokkos::parallel_for(
      "kzero::kernels::adamw",
      Policy(exec, static_cast<int>(ceil_div(count, block_elements)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index begin = team.league_rank() * block_elements;
        // A copy of block_elements: in device code the constant has no address for min to take.
        team_update(team, s, Kokkos::min(Index{block_elements}, count - begin), all + begin);
      });
}

template <class T>
void adamw_on_host(const AdamWStep& step, const AdamWArrays<T>& arrays, Index count) {
  using Host = Kokkos::DefaultHostExecutionSpace;
  const Host host;
  Kokkos::parallel_for(
      "kzero::kernels::adamw_on_host",
      Kokkos::RangePolicy<Host, Kokkos::IndexType<Index>>(host, 0, ceil_div(count, block_elements)),
      [=](Index number) {
        host_update(step, std::min(block_elements, count - number * block_elements),
                    arrays + number * block_elements);
      });
  host.fence("kzero::kernels::adamw_on_host");
}

#define KZERO_INSTANTIATE(T)                                                                \
  template void adamw<T>(const Execution&, const AdamWStep&, const AdamWArrays<T>&, Index); \
  template void adamw_on_host<T>(const AdamWStep&, const AdamWArrays<T>&, Index);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
