#include "kernels/adamw.hpp"

namespace kzero::kernels {

namespace {

constexpr Index block = 4096;  // elements a team updates

}  // namespace

template <class T>
void adamw(const Execution& exec, const AdamWStep& step, Vector<const T> gradient,
           Vector<float> master, Vector<float> first, Vector<float> second, Vector<T> parameters) {
  const Index count = gradient.extent(0);
  const AdamWStep s = step;
  Kokkos::parallel_for(
      "kzero::kernels::adamw", Policy(exec, static_cast<int>(ceil_div(count, block)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index begin = team.league_rank() * block;
        const T* g = gradient.data() + begin;
        float* w = master.data() + begin;
        float* m = first.data() + begin;
        float* v = second.data() + begin;
        T* p = parameters.data() + begin;
        // A copy of block: on a device the constant itself has no address for min to take.
        for_each(team, Kokkos::min(Index{block}, count - begin), [=](Index i) {
          const float gi = static_cast<float>(g[i]) * s.gradient_scale;
          const float mi = s.beta1 * m[i] + s.rest1 * gi;
          const float vi = s.beta2 * v[i] + s.rest2 * gi * gi;
          const float step_size =
              s.lr * (mi / s.correction1) / (Kokkos::sqrt(vi / s.correction2) + s.eps);
          const float wi = w[i] * (1.0F - s.lr * s.decay) - step_size;
          m[i] = mi;
          v[i] = vi;
          w[i] = wi;
          p[i] = static_cast<T>(wi);
        });
      });
}

#define KZERO_INSTANTIATE(T)                                                                 \
  template void adamw<T>(const Execution&, const AdamWStep&, Vector<const T>, Vector<float>, \
                         Vector<float>, Vector<float>, Vector<T>);
KZERO_INSTANTIATE(float)
KZERO_INSTANTIATE(bf16)
KZERO_INSTANTIATE(fp16)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
