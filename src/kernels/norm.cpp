#include "kernels/norm.hpp"

namespace kzero::kernels {

namespace {

/// RMSNorm has neither mean nor bias.
enum class NormKind { layer, rms };

/// A batch of rows, and the parameters and statistics of its norm. bias and mean are null for
/// RMSNorm.
template <class T>
struct ForwardRows {
  const T *x, *weight, *bias;
  float eps;
  T* y;
  float *mean, *rstd;
  Index count, width;
};

template <NormKind kind, class T>
KOKKOS_INLINE_FUNCTION float row_mean(const Team& team, const T* row, Index width) {
  if constexpr (kind == NormKind::layer) {
    const auto value = [](float xj) { return xj; };
    return sum_of(team, width, value, row) / static_cast<float>(width);
  } else {
    return 0;
  }
}

template <NormKind kind, class T>
KOKKOS_INLINE_FUNCTION void team_forward(const Team& team, const ForwardRows<T>& rows, Index i) {
  const Index width = rows.width;
  const T* row = rows.x + i * width;
  T* out = rows.y + i * width;
  const float m = row_mean<kind>(team, row, width);
  const auto square = [=](float xj) { return (xj - m) * (xj - m); };
  const float variance = sum_of(team, width, square, row) / static_cast<float>(width);
  const float r = 1.0F / Kokkos::sqrt(variance + rows.eps);
  if constexpr (kind == NormKind::layer) {
    const auto normal = [=](auto xj, auto wj, auto bj) { return (xj - m) * r * wj + bj; };
    map(team, width, out, normal, row, rows.weight, rows.bias);
  } else {
    const auto normal = [=](auto xj, auto wj) { return xj * r * wj; };
    map(team, width, out, normal, row, rows.weight);
  }
  Kokkos::single(Kokkos::PerTeam(team), [=]() {
    if constexpr (kind == NormKind::layer) rows.mean[i] = m;
    rows.rstd[i] = r;
  });
}

template <NormKind kind, class T>
void forward(const Execution& exec, const char* label, const ForwardRows<T>& rows) {
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(rows.count), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) { team_forward<kind>(team, rows, team.league_rank()); });
}

/// A batch of rows, and the inputs of their gradient. mean is null for RMSNorm.
template <class T>
struct BackwardRows {
  const T *x, *dy, *weight;
  T* dx;
  const float *mean, *rstd;
  bool adds;  // to dx
  Index count, width;
};

/// The rows that a team sums, and the destinations of the sums [D]. db is null for RMSNorm.
struct RowGroup {
  Index begin, end;
  float *dw, *db;
};

/// A row's sums, which give an element's dx and normalised value.
struct RowGradient {
  float mean, rstd, mean_g, mean_gx;

  KOKKOS_INLINE_FUNCTION float normal(float x) const { return (x - mean) * rstd; }
  KOKKOS_INLINE_FUNCTION float dx(float x, float dy, float weight) const {
    return rstd * (dy * weight - mean_g - normal(x) * mean_gx);
  }
};

/// The statistics that forward kept. The other sums are computed later.
template <NormKind kind, class T>
KOKKOS_INLINE_FUNCTION RowGradient row_gradient(const BackwardRows<T>& rows, Index i) {
  if constexpr (kind == NormKind::layer) {
    return {rows.mean[i], rows.rstd[i], 0, 0};
  } else {
    return {0, rows.rstd[i], 0, 0};
  }
}

/// Processes row by row. Each row is read again while it is in the first-level cache.
template <NormKind kind, class T>
KOKKOS_INLINE_FUNCTION void host_backward(const Team& team, const BackwardRows<T>& rows,
                                          const RowGroup& group) {
  const Index width = rows.width;
  const T* w = rows.weight;
  float *dw = group.dw, *db = group.db;
  const bool adds = rows.adds;
  for_each(team, width, [=](Index j) {
    dw[j] = 0;
    if constexpr (kind == NormKind::layer) db[j] = 0;
  });
  for (Index i = group.begin; i < group.end; ++i) {
    const T* x = rows.x + i * width;
    const T* dy = rows.dy + i * width;
    T* out = rows.dx + i * width;
    const float scale = 1.0F / static_cast<float>(width);
    RowGradient row = row_gradient<kind>(rows, i);
    const auto g = [](float dyj, float wj) { return dyj * wj; };
    const auto gx = [=](float dyj, float wj, float xj) {
      return dyj * wj * (xj - row.mean) * row.rstd;
    };
    if constexpr (kind == NormKind::layer) row.mean_g = scale * sum_of(team, width, g, dy, w);
    row.mean_gx = scale * sum_of(team, width, gx, dy, w, x);
    for_each(team, width, [=](Index j) {
      const float dyj = static_cast<float>(dy[j]), xj = static_cast<float>(x[j]);
      dw[j] += dyj * row.normal(xj);
      if constexpr (kind == NormKind::layer) db[j] += dyj;
      const float before = adds ? static_cast<float>(out[j]) : 0.0F;
      out[j] = static_cast<T>(before + row.dx(xj, dyj, static_cast<float>(w[j])));
    });
  }
}

/// Computes dx with one row per warp, so that the sums use no other thread.
template <NormKind kind, int pack, class T>
KOKKOS_INLINE_FUNCTION void device_dx(const Team& team, const BackwardRows<T>& rows,
                                      const RowGroup& group) {
  const Index packs = rows.width / pack;
  const float scale = 1.0F / static_cast<float>(rows.width);
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, group.begin, group.end), [&](Index i) {
    const T* x = rows.x + i * rows.width;
    const T* dy = rows.dy + i * rows.width;
    T* out = rows.dx + i * rows.width;
    RowGradient row = row_gradient<kind>(rows, i);
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
    if constexpr (kind == NormKind::layer) row.mean_g = sum_over([](float, float g) { return g; });
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

/// Computes dw and db with one pack of columns per thread. Its sums stay in registers.
template <NormKind kind, int pack, class T>
KOKKOS_INLINE_FUNCTION void device_parameters(const Team& team, const BackwardRows<T>& rows,
                                              const RowGroup& group) {
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, rows.width / pack), [&](Index number) {
    const Index j = number * pack;
    Pack<float, pack> weight{}, bias{};
    for (Index i = group.begin; i < group.end; ++i) {
      const auto xs = read_pack<pack>(rows.x + i * rows.width + j),
                 dys = read_pack<pack>(rows.dy + i * rows.width + j);
      const RowGradient row = row_gradient<kind>(rows, i);
      for (int e = 0; e < pack; ++e) {
        const float dyj = static_cast<float>(dys.values[e]);
        weight.values[e] += dyj * row.normal(static_cast<float>(xs.values[e]));
        bias.values[e] += dyj;
      }
    }
    write_pack(group.dw + j, weight);
    if constexpr (kind == NormKind::layer) write_pack(group.db + j, bias);
  });
}

template <NormKind kind, class T>
KOKKOS_INLINE_FUNCTION void team_backward(const Team& team, const BackwardRows<T>& rows,
                                          const RowGroup& group) {
  constexpr int pack = 16 / sizeof(T);
  if constexpr (tensor::on_host) {
    host_backward<kind>(team, rows, group);
  } else if (rows.width % pack == 0) {
    device_dx<kind, pack>(team, rows, group);
    device_parameters<kind, pack>(team, rows, group);
  } else {
    device_dx<kind, 1>(team, rows, group);
    device_parameters<kind, 1>(team, rows, group);
  }
}

template <class T, class Input, class Gradients>
BackwardRows<T> backward_rows(const Input& input, const float* mean, Matrix<const T> dy,
                              const Gradients& gradients) {
  return {input.x.data(),
          dy.data(),
          input.weight.data(),
          gradients.dx.data(),
          mean,
          input.rstd.data(),
          gradients.dx_accumulate == Accumulate::yes,
          static_cast<Index>(input.x.extent(0)),
          static_cast<Index>(input.x.extent(1))};
}

/// Computes dx. Each row of `partial` receives the sums over a group of rows: dw, then LayerNorm's
/// db.
template <NormKind kind, class T>
void backward(const Execution& exec, const char* label, const BackwardRows<T>& rows,
              Matrix<float> partial) {
  const Index group = ceil_div(rows.count, row_groups);
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(row_groups), team_size(8), vector_length(32)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index first = Kokkos::min(team.league_rank() * group, rows.count);
        float* dw = &partial(team.league_rank(), 0);
        float* db = kind == NormKind::layer ? dw + rows.width : nullptr;
        team_backward<kind>(team, rows, {first, Kokkos::min(first + group, rows.count), dw, db});
      });
}

}  // namespace

template <class T>
void layernorm_forward(const Execution& exec, Matrix<const T> x, Vector<const T> weight,
                       Vector<const T> bias, float eps, Matrix<T> y, Vector<float> mean,
                       Vector<float> rstd) {
  const Index count = x.extent(0), width = x.extent(1);
  const ForwardRows<T> rows{x.data(),    weight.data(), bias.data(), eps,  y.data(),
                            mean.data(), rstd.data(),   count,       width};
  forward<NormKind::layer>(exec, "kzero::kernels::layernorm_forward", rows);
}

template <class T>
void rmsnorm_forward(const Execution& exec, Matrix<const T> x, Vector<const T> weight, float eps,
                     Matrix<T> y, Vector<float> rstd) {
  const Index count = x.extent(0), width = x.extent(1);
  const ForwardRows<T> rows{x.data(), weight.data(), nullptr, eps,  y.data(),
                            nullptr,  rstd.data(),   count,   width};
  forward<NormKind::rms>(exec, "kzero::kernels::rmsnorm_forward", rows);
}

template <class T>
void layernorm_backward(const Execution& exec, const LayerNormInput<T>& input, Matrix<const T> dy,
                        const LayerNormGradients<T>& gradients, Matrix<float> partial) {
  const auto rows = backward_rows<T>(input, input.mean.data(), dy, gradients);
  backward<NormKind::layer>(exec, "kzero::kernels::layernorm_backward", rows, partial);
  if (gradients.dweight.size() == 0) return;
  sum_groups<T>(exec, partial, 0, gradients.accumulate, gradients.dweight);
  sum_groups<T>(exec, partial, rows.width, gradients.accumulate, gradients.dbias);
}

template <class T>
void rmsnorm_backward(const Execution& exec, const RmsNormInput<T>& input, Matrix<const T> dy,
                      const RmsNormGradients<T>& gradients, Matrix<float> partial) {
  const auto rows = backward_rows<T>(input, nullptr, dy, gradients);
  backward<NormKind::rms>(exec, "kzero::kernels::rmsnorm_backward", rows, partial);
  if (gradients.dweight.size() == 0) return;
  sum_groups<T>(exec, partial, 0, gradients.accumulate, gradients.dweight);
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void layernorm_forward<T>(const Execution&, Matrix<const T>, Vector<const T>,           \
                                     Vector<const T>, float, Matrix<T>, Vector<float>,             \
                                     Vector<float>);                                               \
  template void layernorm_backward<T>(const Execution&, const LayerNormInput<T>&, Matrix<const T>, \
                                      const LayerNormGradients<T>&, Matrix<float>);                \
  template void rmsnorm_forward<T>(const Execution&, Matrix<const T>, Vector<const T>, float,      \
                                   Matrix<T>, Vector<float>);                                      \
  template void rmsnorm_backward<T>(const Execution&, const RmsNormInput<T>&, Matrix<const T>,     \
                                    const RmsNormGradients<T>&, Matrix<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
