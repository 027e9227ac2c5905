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
        const auto value = [](float xj) { return xj; };
        const float m = sum_of(team, width, value, row) / static_cast<float>(width);
        const auto square = [=](float xj) { return (xj - m) * (xj - m); };
        const float variance = sum_of(team, width, square, row) / static_cast<float>(width);
        const float r = 1.0F / Kokkos::sqrt(variance + eps);
        const auto normal = [=](float xj, float wj, float bj) { return (xj - m) * r * wj + bj; };
        map(team, width, out, normal, row, w, b);
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          mean(i) = m;
          rstd(i) = r;
        });
      });
}

namespace {

/// A range of rows in memory, and the inputs of their gradient.
template <class T>
struct BackwardRows {
  const T *x, *dy, *weight;
  T* dx;
  const float *mean, *rstd;
  bool adds;  // to dx
  Index count, width;
};

/// The row's sums, from which dx of an element and its normalised value follow.
struct RowGradient {
  float mean, rstd, mean_g, mean_gx;

  KOKKOS_INLINE_FUNCTION float normal(float x) const { return (x - mean) * rstd; }
  KOKKOS_INLINE_FUNCTION float dx(float x, float dy, float weight) const {
    return rstd * (dy * weight - mean_g - normal(x) * mean_gx);
  }
};

/// Processes row by row, each read once more while it is in the first-level cache. dw and db are
/// [D].
template <class T>
KOKKOS_INLINE_FUNCTION void host_backward(const Team& team, const BackwardRows<T>& rows, float* dw,
                                          float* db) {
  const Index width = rows.width;
  const T* w = rows.weight;
  const bool adds = rows.adds;
  for_each(team, width, [=](Index j) { dw[j] = db[j] = 0; });
  for (Index i = 0; i < rows.count; ++i) {
    const T* x = rows.x + i * width;
    const T* dy = rows.dy + i * width;
    T* out = rows.dx + i * width;
    const float scale = 1.0F / static_cast<float>(width);
    RowGradient row{rows.mean[i], rows.rstd[i], 0, 0};
    const auto g = [](float dyj, float wj) { return dyj * wj; };
    const auto gx = [=](float dyj, float wj, float xj) {
      return dyj * wj * (xj - row.mean) * row.rstd;
    };
    row.mean_g = scale * sum_of(team, width, g, dy, w);
    row.mean_gx = scale * sum_of(team, width, gx, dy, w, x);
    for_each(team, width, [=](Index j) {
      const float dyj = static_cast<float>(dy[j]), xj = static_cast<float>(x[j]);
      dw[j] += dyj * row.normal(xj);
      db[j] += dyj;
      const float before = adds ? static_cast<float>(out[j]) : 0.0F;
      out[j] = static_cast<T>(before + row.dx(xj, dyj, static_cast<float>(w[j])));
    });
  }
}

/// Computes dx with one row per warp, so that the sums need no other thread.
template <int pack, class T>
KOKKOS_INLINE_FUNCTION void device_dx(const Team& team, const BackwardRows<T>& rows) {
  const Index packs = rows.width / pack;
  const float scale = 1.0F / static_cast<float>(rows.width);
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, rows.count), [&](Index i) {
    const T* x = rows.x + i * rows.width;
    const T* dy = rows.dy + i * rows.width;
    T* out = rows.dx + i * rows.width;
    RowGradient row{rows.mean[i], rows.rstd[i], 0, 0};
    const auto sum_over = [&](const auto& f) {
      float total = 0;
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, packs),
          [&](Index number, float& partial) {
            const Index j = number * pack;
            const auto xs = read_pack<pack>(x + j), dys = read_pack<pack>(dy + j),
                       ws = read_pack<pack>(rows.weight + j);
            for (int e = 0; e < pack; ++e)
              partial += f(static_cast<float>(xs.values[e]),
                           static_cast<float>(dys.values[e]) * static_cast<float>(ws.values[e]));
          },
          total);
      return scale * total;
    };
    row.mean_g = sum_over([](float, float g) { return g; });
    row.mean_gx = sum_over([&](float xj, float g) { return g * row.normal(xj); });
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, packs), [&](Index number) {
      const Index j = number * pack;
      const auto xs = read_pack<pack>(x + j), dys = read_pack<pack>(dy + j),
                 ws = read_pack<pack>(rows.weight + j);
      auto outs = rows.adds ? read_pack<pack>(out + j) : Pack<T, pack>{};
      for (int e = 0; e < pack; ++e) {
        const float before = rows.adds ? static_cast<float>(outs.values[e]) : 0.0F;
        outs.values[e] = static_cast<T>(before + row.dx(static_cast<float>(xs.values[e]),
                                                        static_cast<float>(dys.values[e]),
                                                        static_cast<float>(ws.values[e])));
      }
      write_pack(out + j, outs);
    });
  });
}

/// Computes dw and db with one pack of columns per thread, whose sums stay in registers.
template <int pack, class T>
KOKKOS_INLINE_FUNCTION void device_parameters(const Team& team, const BackwardRows<T>& rows,
                                              float* dw, float* db) {
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, rows.width / pack), [&](Index number) {
    const Index j = number * pack;
    Pack<float, pack> weight{}, bias{};
    for (Index i = 0; i < rows.count; ++i) {
      const auto xs = read_pack<pack>(rows.x + i * rows.width + j),
                 dys = read_pack<pack>(rows.dy + i * rows.width + j);
      const RowGradient row{rows.mean[i], rows.rstd[i], 0, 0};
      for (int e = 0; e < pack; ++e) {
        const float dyj = static_cast<float>(dys.values[e]);
        weight.values[e] += dyj * row.normal(static_cast<float>(xs.values[e]));
        bias.values[e] += dyj;
      }
    }
    write_pack(dw + j, weight);
    write_pack(db + j, bias);
  });
}

template <class T>
KOKKOS_INLINE_FUNCTION void team_backward(const Team& team, const BackwardRows<T>& rows, float* dw,
                                          float* db) {
  constexpr int pack = 16 / sizeof(T);
  if constexpr (tensor::on_host) {
    host_backward(team, rows, dw, db);
  } else if (rows.width % pack == 0) {
    device_dx<pack>(team, rows);
    device_parameters<pack>(team, rows, dw, db);
  } else {
    device_dx<1>(team, rows);
    device_parameters<1>(team, rows, dw, db);
  }
}

}  // namespace

template <class T>
void layernorm_backward(const Execution& exec, const LayerNormInput<T>& input, Matrix<const T> dy,
                        const LayerNormGradients<T>& gradients, Matrix<float> partial) {
  const Index rows = input.x.extent(0), width = input.x.extent(1);
  const Index group = ceil_div(rows, row_groups);
  const BackwardRows<T> all{input.x.data(),
                            dy.data(),
                            input.weight.data(),
                            gradients.dx.data(),
                            input.mean.data(),
                            input.rstd.data(),
                            gradients.dx_update == Update::add,
                            rows,
                            width};
  Kokkos::parallel_for(
      "kzero::kernels::layernorm_backward",
      Policy(exec, static_cast<int>(row_groups), team_size(8), team_size(32)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index first = team.league_rank() * group, at = first * width;
        const Index count = Kokkos::max(Index{0}, Kokkos::min(group, rows - first));
        float* dw = &partial(team.league_rank(), 0);
        team_backward<T>(team,
                         {all.x + at, all.dy + at, all.weight, all.dx + at, all.mean + first,
                          all.rstd + first, all.adds, count, width},
                         dw, dw + width);
      });
  sum_groups<T>(exec, partial, 0, gradients.update, gradients.dweight);
  sum_groups<T>(exec, partial, width, gradients.update, gradients.dbias);
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void layernorm_forward<T>(const Execution&, Matrix<const T>, Vector<const T>,           \
                                     Vector<const T>, float, Matrix<T>, Vector<float>,             \
                                     Vector<float>);                                               \
  template void layernorm_backward<T>(const Execution&, const LayerNormInput<T>&, Matrix<const T>, \
                                      const LayerNormGradients<T>&, Matrix<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
