#include "kernels/layernorm.hpp"

namespace kzero::kernels {

template <class T>
void layernorm_forward(const Execution& exec, Matrix<const T> x, Vector<const T> weight,
                       Vector<const T> bias, float eps, Matrix<T> y, Vector<float> mean,
                       Vector<float> rstd) {
  const Index width = x.extent(1);
  Kokkos::parallel_for(
      "kzero::kernels::layernorm_forward",
      Policy(exec, static_cast<int>(x.extent(0)), Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        const T* row = &x(i, 0);
        T* out = &y(i, 0);
        const T* w = weight.data();
        const T* b = bias.data();
        const float m = sum(team, width, [=](Index j) { return static_cast<float>(row[j]); }) /
                        static_cast<float>(width);
        const float variance = sum(team, width,
                                   [=](Index j) {
                                     const float d = static_cast<float>(row[j]) - m;
                                     return d * d;
                                   }) /
                               static_cast<float>(width);
        const float r = 1.0F / Kokkos::sqrt(variance + eps);
        const auto normal = [=](float xj, float wj, float bj) { return (xj - m) * r * wj + bj; };
        map(team, width, out, normal, row, w, b);
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          mean(i) = m;
          rstd(i) = r;
        });
      });
}

template <class T>
void layernorm_backward(const Execution& exec, Matrix<const T> x, Vector<const T> weight,
                        Vector<const float> mean, Vector<const float> rstd, Matrix<const T> dy,
                        Update dx_mode, Matrix<T> dx, Update mode, Vector<T> dweight,
                        Vector<T> dbias, Matrix<float> partial) {
  const Index rows = x.extent(0), width = x.extent(1);
  const Index group = ceil_div(rows, row_groups);
  const float keep = dx_mode == Update::add ? 1.0F : 0.0F;
  Kokkos::parallel_for(
      "kzero::kernels::layernorm_backward",
      Policy(exec, static_cast<int>(row_groups), Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const Index g = team.league_rank();
        float* dw = &partial(g, 0);
        float* db = dw + width;
        const T* w = weight.data();
        for_each(team, 2 * width, [=](Index j) { dw[j] = 0; });
        team.team_barrier();
        for (Index i = g * group; i < rows && i < (g + 1) * group; ++i) {
          const T* row = &x(i, 0);
          const T* gradient = &dy(i, 0);
          T* out = &dx(i, 0);
          const float m = mean(i), r = rstd(i);
          const float scale = 1.0F / static_cast<float>(width);
          const float mean_g = scale * sum(team, width, [=](Index j) {
                                 return static_cast<float>(gradient[j]) * static_cast<float>(w[j]);
                               });
          const float mean_gx = scale * sum(team, width, [=](Index j) {
                                  return static_cast<float>(gradient[j]) *
                                         static_cast<float>(w[j]) *
                                         (static_cast<float>(row[j]) - m) * r;
                                });
          for_each(team, width, [=](Index j) {
            const float normal = (static_cast<float>(row[j]) - m) * r;
            const float dyj = static_cast<float>(gradient[j]);
            dw[j] += dyj * normal;
            db[j] += dyj;
            const float before = keep != 0.0F ? static_cast<float>(out[j]) : 0.0F;
            out[j] = static_cast<T>(
                before + r * (dyj * static_cast<float>(w[j]) - mean_g - normal * mean_gx));
          });
          team.team_barrier();
        }
      });
  sum_groups<T>(exec, partial, 0, mode, dweight);
  sum_groups<T>(exec, partial, width, mode, dbias);
}

#define KZERO_INSTANTIATE(T)                                                                     \
  template void layernorm_forward<T>(const Execution&, Matrix<const T>, Vector<const T>,         \
                                     Vector<const T>, float, Matrix<T>, Vector<float>,           \
                                     Vector<float>);                                             \
  template void layernorm_backward<T>(const Execution&, Matrix<const T>, Vector<const T>,        \
                                      Vector<const float>, Vector<const float>, Matrix<const T>, \
                                      Update, Matrix<T>, Update, Vector<T>, Vector<T>,           \
                                      Matrix<float>);
KZERO_INSTANTIATE(float)
KZERO_INSTANTIATE(bf16)
KZERO_INSTANTIATE(fp16)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
