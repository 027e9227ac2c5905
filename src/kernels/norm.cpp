#include "kernels/norm.hpp"

#include "base/error.hpp"
#include "kernels/norm_forward.hpp"

namespace kzero::kernels {

namespace {

/// A batch of rows, and the inputs of their gradient. mean is null for RMSNorm, which alone has a
/// scale.
template <class T>
struct BackwardRows {
  const T *x, *dy, *weight;
  T* dx;
  const float *mean, *rstd;
  bool adds;     // to dx
  bool sums_dx;  // for LayerNorm on devices: also sums dx before and after
  Index count, width;
  NormScale scale;
};

/// The rows that a team sums, and the destinations of the sums: dw [D], then LayerNorm's db [D],
/// then the sums of dx after and before.
struct RowGroup {
  Index begin, end;
  float* sums;
};

/// By what the norm multiplies a normalised value.
template <NormKind kind>
KOKKOS_INLINE_FUNCTION float scale_of(const NormScale& scale, float weight) {
  if constexpr (kind == NormKind::layer) {
    return weight;
  } else {
    return scale.of(weight);
  }
}

/// A row's sums, which give an element's dx and normalised value.
struct RowGradient {
  float mean, rstd, mean_g, mean_gx;

  KOKKOS_INLINE_FUNCTION float normal(float x) const { return (x - mean) * rstd; }
  // A named fma: without mean_g, processors differ in which of the two products it has.
  KOKKOS_INLINE_FUNCTION float dx(float x, float dy, float weight) const {
    return rstd * Kokkos::fma(-normal(x), mean_gx, dy * weight - mean_g);
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
  float *dw = group.sums, *db = group.sums + width;
  const bool adds = rows.adds;
  const NormScale scale = rows.scale;
  for_each(team, width, [=](Index j) {
    dw[j] = 0;
    if constexpr (kind == NormKind::layer) db[j] = 0;
  });
  for (Index i = group.begin; i < group.end; ++i) {
    const T* x = rows.x + i * width;
    const T* dy = rows.dy + i * width;
    T* out = rows.dx + i * width;
    const float share = 1.0F / static_cast<float>(width);
    RowGradient row = row_gradient<kind>(rows, i);
    const auto g = [](float dyj, float wj) { return dyj * wj; };
    const auto gx = [=](float dyj, float wj, float xj) {
      return dyj * scale_of<kind>(scale, wj) * (xj - row.mean) * row.rstd;
    };
    if constexpr (kind == NormKind::layer) row.mean_g = share * sum_of(team, width, g, dy, w);
    row.mean_gx = share * sum_of(team, width, gx, dy, w, x);
    for_each(team, width, [=](Index j) {
      const float dyj = static_cast<float>(dy[j]), xj = static_cast<float>(x[j]);
      dw[j] += scale.factor * dyj * row.normal(xj);
      if constexpr (kind == NormKind::layer) db[j] += dyj;
      const float before = adds ? static_cast<float>(out[j]) : 0.0F;
      out[j] =
          static_cast<T>(before + row.dx(xj, dyj, scale_of<kind>(scale, static_cast<float>(w[j]))));
    });
  }
}

/// The sums over a row from which dx follows: of g times the normalised value, and for LayerNorm
/// also of g, the gradient of the normalised value.
template <NormKind kind>
struct DxSums {
  static constexpr int count = kind == NormKind::layer ? 2 : 1;

  float of[count] = {};

  KOKKOS_INLINE_FUNCTION DxSums& operator+=(const DxSums& other) {
    for (int n = 0; n < count; ++n) of[n] += other.of[n];
    return *this;
  }

  KOKKOS_INLINE_FUNCTION void add(const RowGradient& row, float x, float dy, float weight) {
    const float g = dy * weight;
    of[0] += g * row.normal(x);
    if constexpr (kind == NormKind::layer) of[1] += g;
  }

  KOKKOS_INLINE_FUNCTION void complete(RowGradient& row, Index width) const {
    const float scale = 1.0F / static_cast<float>(width);
    row.mean_gx = scale * of[0];
    if constexpr (kind == NormKind::layer) row.mean_g = scale * of[1];
  }
};

/// Adds an element to the sums of its column: dw, then LayerNorm's db.
template <NormKind kind>
KOKKOS_INLINE_FUNCTION void add_parameters(const RowGradient& row, const NormScale& scale, float x,
                                           float dy, float& dw, [[maybe_unused]] float& db) {
  if constexpr (kind == NormKind::layer) {
    dw += dy * row.normal(x);
    db += dy;
  } else {
    dw += scale.factor * dy * row.normal(x);
  }
}

/// Sums a row with the lanes of one thread, and returns all of its sums on each lane.
template <NormKind kind, int pack, class T>
KOKKOS_INLINE_FUNCTION RowGradient device_row(const Team& team, const BackwardRows<T>& rows,
                                              Index i) {
  const T* x = rows.x + i * rows.width;
  const T* dy = rows.dy + i * rows.width;
  RowGradient row = row_gradient<kind>(rows, i);
  DxSums<kind> sums;
  Kokkos::parallel_reduce(
      Kokkos::ThreadVectorRange(team, rows.width / pack),
      [&](Index number, DxSums<kind>& partial) {
        const Index j = number * pack;
        const auto xs = Pack<T, pack>::at(x + j), dys = Pack<T, pack>::at(dy + j),
                   ws = read_pack<pack>(rows.weight + j);
        for (int e = 0; e < pack; ++e) {
          partial.add(row, static_cast<float>(xs.values[e]), static_cast<float>(dys.values[e]),
                      scale_of<kind>(rows.scale, static_cast<float>(ws.values[e])));
        }
      },
      sums);
  sums.complete(row, rows.width);
  return row;
}

/// Computes dx of rows [begin, end) with one row per warp, so that the sums use no other thread.
template <NormKind kind, int pack, class T>
KOKKOS_INLINE_FUNCTION void device_dx(const Team& team, const BackwardRows<T>& rows, Index begin,
                                      Index end) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, begin, end), [&](Index i) {
    const T* x = rows.x + i * rows.width;
    const T* dy = rows.dy + i * rows.width;
    T* out = rows.dx + i * rows.width;
    const RowGradient row = device_row<kind, pack>(team, rows, i);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, rows.width / pack), [&](Index number) {
      const Index j = number * pack;
      const auto xs = Pack<T, pack>::at(x + j), dys = Pack<T, pack>::at(dy + j),
                 ws = read_pack<pack>(rows.weight + j);
      auto outs = rows.adds ? Pack<T, pack>::at(out + j) : Pack<T, pack>{};
      for (int e = 0; e < pack; ++e) {
        const float before = rows.adds ? static_cast<float>(outs.values[e]) : 0.0F;
        outs.values[e] = static_cast<T>(
            before + row.dx(static_cast<float>(xs.values[e]), static_cast<float>(dys.values[e]),
                            scale_of<kind>(rows.scale, static_cast<float>(ws.values[e]))));
      }
      Pack<T, pack>::at(out + j) = outs;
    });
  });
}

/// Calls add(j, totals) for packs of columns. It adds rows to totals, one per result, which begin
/// with what sums [results,D] holds, or with 0 for the first rows of a group.
template <int results, int pack, class Add>
KOKKOS_INLINE_FUNCTION void add_to_columns(const Team& team, Index width, bool is_first,
                                           float* sums, const Add& add) {
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, width / pack), [&](Index number) {
    const Index j = number * pack;
    Pack<float, pack> totals[results] = {};
    if (!is_first) {
      for (int r = 0; r < results; ++r)
        totals[r] = read_pack<pack>(static_cast<const float*>(sums) + r * width + j);
    }
    add(j, totals);
    for (int r = 0; r < results; ++r) write_pack(sums + r * width + j, totals[r]);
  });
}

/// Adds dx of rows [begin, end) to a sum of columns.
template <int pack, class T>
KOKKOS_INLINE_FUNCTION void add_dx(const BackwardRows<T>& rows, Index begin, Index end, Index j,
                                   Pack<float, pack>& total) {
  const T* dx = rows.dx;
  for (Index i = begin; i < end; ++i) {
    const auto values = Pack<T, pack>::at(dx + i * rows.width + j);
    for (int e = 0; e < pack; ++e) total.values[e] += static_cast<float>(values.values[e]);
  }
}

/// Adds rows [begin, end) to dw and db.
template <NormKind kind, int pack, class T>
KOKKOS_INLINE_FUNCTION void add_rows(const BackwardRows<T>& rows, Index begin, Index end, Index j,
                                     Pack<float, pack>* totals) {
  for (Index i = begin; i < end; ++i) {
    const auto xs = Pack<T, pack>::at(rows.x + i * rows.width + j),
               dys = Pack<T, pack>::at(rows.dy + i * rows.width + j);
    const RowGradient row = row_gradient<kind>(rows, i);
    for (int e = 0; e < pack; ++e) {
      add_parameters<kind>(row, rows.scale, static_cast<float>(xs.values[e]),
                           static_cast<float>(dys.values[e]), totals[0].values[e],
                           totals[kind == NormKind::layer ? 1 : 0].values[e]);
    }
  }
}

/// Rows that a team processes at a time, two per warp. The team adds up their columns while they
/// are in its first-level cache, so that a row is read once from memory.
constexpr Index cached_rows = 16;

/// Processes a group of rows. Packs of columns have half the bytes of a row's packs, so that rows
/// of a thousand columns occupy a team.
template <NormKind kind, int pack, class T>
KOKKOS_INLINE_FUNCTION void device_backward(const Team& team, const BackwardRows<T>& rows,
                                            const RowGroup& group) {
  constexpr int columns = pack == 1 ? 1 : pack / 2;
  constexpr int parameters = kind == NormKind::layer ? 2 : 1;
  const Index width = rows.width;
  Index begin = group.begin;
  do {  // at least once: an empty group's sums are 0
    const Index end = Kokkos::min(begin + Index{cached_rows}, group.end);
    const bool is_first = begin == group.begin;
    const auto sum_dx = [&](float* sums) {
      add_to_columns<1, columns>(team, width, is_first, sums,
                                 [&](Index j, Pack<float, columns>* totals) {
                                   add_dx<columns>(rows, begin, end, j, totals[0]);
                                 });
    };
    if (rows.sums_dx) {
      sum_dx(group.sums + (parameters + 1) * width);
      team.team_barrier();
    }
    device_dx<kind, pack>(team, rows, begin, end);
    team.team_barrier();
    if (rows.sums_dx) sum_dx(group.sums + parameters * width);
    add_to_columns<parameters, columns>(team, width, is_first, group.sums,
                                        [&](Index j, Pack<float, columns>* totals) {
                                          add_rows<kind, columns>(rows, begin, end, j, totals);
                                        });
    begin = end;
  } while (begin < group.end);
}

/// A group of rows and the sums of their columns. A team has one tile of the rows at a time in its
/// registers.
template <NormKind kind, class T>
class BackwardTiles {
 public:
  KOKKOS_INLINE_FUNCTION BackwardTiles(const Team& team, const BackwardRows<T>& rows)
      : team_(team), rows_(rows), lane_(team, rows.width) {
    lane_.for_each([&](int p, Index j) { weight_[p] = read_pack<tile_columns>(rows.weight + j); });
  }

  KOKKOS_INLINE_FUNCTION void run(const RowGroup& group) {
    for (Index begin = group.begin; begin < group.end; begin += count) add({begin, group.end});
    const int asked = rows_.sums_dx ? results : parameters;
    lane_.for_each([&](int p, Index j) {
#pragma unroll
      for (int n = 0; n < results; ++n) {
        if (n < asked) write_pack(group.sums + n * rows_.width + j, sums_[p][n]);
      }
    });
  }

 private:
  static constexpr int count = tile_rows<T>, parameters = kind == NormKind::layer ? 2 : 1,
                       results = kind == NormKind::layer ? 4 : 1;
  using Elements = Pack<T, tile_columns>;

  KOKKOS_INLINE_FUNCTION void add(const TileRows& tile) {
    RowTile<T> x, dy, dx;
    x.read(lane_, tile, rows_.x, rows_.width);
    dy.read(lane_, tile, rows_.dy, rows_.width);
    if (rows_.adds || rows_.sums_dx) dx.read(lane_, tile, rows_.dx, rows_.width);
    RowGradient gradients[count] = {};
    tile.template for_each<count>(
        [&](int r, Index i) { gradients[r] = row_gradient<kind>(rows_, i); });
    PerRow<DxSums<kind>, count> sums;
    lane_.for_each([&](int p, Index) {
#pragma unroll
      for (int r = 0; r < count; ++r) {
        add_row(gradients[r], p, x.packs[p][r].elements(), dy.packs[p][r].elements(),
                dx.packs[p][r].elements(), sums.of[r]);
      }
    });
    x.forget_elements();
    dy.forget_elements();
    dx.forget_elements();
#pragma unroll
    for (auto& pack : weight_) pack.forget_elements();
    sums = sum_of_lanes(team_, lane_, sums);
    lane_.for_each([&](int p, Index) {
#pragma unroll
      for (int r = 0; r < count; ++r) {
        sums.of[r].complete(gradients[r], rows_.width);
        dx.packs[p][r] = dx_of(gradients[r], p, x.packs[p][r].elements(), dy.packs[p][r].elements(),
                               dx.packs[p][r].elements());
      }
    });
    dx.write(lane_, tile, rows_.dx, rows_.width);
  }

  KOKKOS_INLINE_FUNCTION float weight(const Elements& of, int e) const {
    return scale_of<kind>(rows_.scale, static_cast<float>(of.values[e]));
  }

  /// Adds a pack to the sums of its columns and to those of its row.
  KOKKOS_INLINE_FUNCTION void add_row(const RowGradient& row, int p, const Elements& x,
                                      const Elements& dy, const Elements& before,
                                      DxSums<kind>& of_row) {
    const Elements w = weight_[p].elements();
    auto& sums = sums_[p];
#pragma unroll
    for (int e = 0; e < tile_columns; ++e) {
      const float xj = static_cast<float>(x.values[e]), dyj = static_cast<float>(dy.values[e]);
      of_row.add(row, xj, dyj, weight(w, e));
      add_parameters<kind>(row, rows_.scale, xj, dyj, sums[0].values[e],
                           sums[parameters - 1].values[e]);
      if constexpr (kind == NormKind::layer)
        sums[parameters + 1].values[e] += static_cast<float>(before.values[e]);
    }
  }

  /// A pack of dx, which it adds to the sums of its columns.
  KOKKOS_INLINE_FUNCTION Elements dx_of(const RowGradient& row, int p, const Elements& x,
                                        const Elements& dy, const Elements& before) {
    const Elements w = weight_[p].elements();
    Elements dx;
#pragma unroll
    for (int e = 0; e < tile_columns; ++e) {
      const float onto = rows_.adds ? static_cast<float>(before.values[e]) : 0.0F;
      dx.values[e] = static_cast<T>(onto + row.dx(static_cast<float>(x.values[e]),
                                                  static_cast<float>(dy.values[e]), weight(w, e)));
      if constexpr (kind == NormKind::layer)
        sums_[p][parameters].values[e] += static_cast<float>(dx.values[e]);
    }
    return dx;
  }

  const Team& team_;
  const BackwardRows<T>& rows_;
  LanePacks lane_;
  HeldPack<T> weight_[lane_packs];
  Pack<float, tile_columns> sums_[lane_packs][results] = {};
};

template <NormKind kind, class T>
KOKKOS_INLINE_FUNCTION void team_backward(const Team& team, const BackwardRows<T>& rows,
                                          const RowGroup& group) {
  constexpr int pack = 16 / sizeof(T);
  if constexpr (tensor::on_host) {
    host_backward<kind>(team, rows, group);
  } else if (rows.width % pack == 0 && begin_packs(rows.x, rows.dy, rows.dx)) {
    device_backward<kind, pack>(team, rows, group);
  } else {
    device_backward<kind, 1>(team, rows, group);
  }
}

template <class T, class Input, class Gradients>
BackwardRows<T> backward_rows(const Input& input, const float* mean, Matrix<const T> dy,
                              const Gradients& gradients, bool sums_dx,
                              const NormScale& scale = {}) {
  return {input.x.data(),
          dy.data(),
          input.weight.data(),
          gradients.dx.data(),
          mean,
          input.rstd.data(),
          gradients.dx_accumulate == Accumulate::yes,
          sums_dx,
          static_cast<Index>(input.x.extent(0)),
          static_cast<Index>(input.x.extent(1)),
          scale};
}

/// Group `number` of the rows. Its sums are that row of `partial`.
template <class T>
KOKKOS_INLINE_FUNCTION RowGroup row_group(const BackwardRows<T>& rows, const Matrix<float>& partial,
                                          Index number) {
  const Index size = ceil_div(rows.count, row_groups);
  const Index first = Kokkos::min(number * size, rows.count);
  return {first, Kokkos::min(first + size, rows.count), &partial(number, 0)};
}

template <NormKind kind, class T>
void backward_by_tiles(const Execution& exec, const char* label, const BackwardRows<T>& rows,
                       Matrix<float> partial) {
  Kokkos::parallel_for(
      label, tile_policy(exec, row_groups, rows.width), KOKKOS_LAMBDA(const Team& team) {
        BackwardTiles<kind, T>(team, rows).run(row_group(rows, partial, team.league_rank()));
      });
}

template <NormKind kind, class T>
void backward_by_rows(const Execution& exec, const char* label, const BackwardRows<T>& rows,
                      Matrix<float> partial) {
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(row_groups), team_size(8), vector_length(32)),
      KOKKOS_LAMBDA(const Team& team) {
        team_backward<kind>(team, rows, row_group(rows, partial, team.league_rank()));
      });
}

/// Computes dx. Each row of `partial` receives the sums over a group of rows: dw, then for
/// LayerNorm db and, if asked for, the sums of dx after and before.
template <NormKind kind, class T>
void backward(const Execution& exec, const char* label, const BackwardRows<T>& rows,
              Matrix<float> partial) {
  if constexpr (!tensor::on_host) {
    if (suits_tile(rows.width, rows.x, rows.dy, rows.dx)) {
      backward_by_tiles<kind>(exec, label, rows, partial);
      return;
    }
  }
  backward_by_rows<kind>(exec, label, rows, partial);
}

}  // namespace

template <class T>
void layernorm_forward(const Execution& exec, Matrix<const T> x, Vector<const T> weight,
                       Vector<const T> bias, float eps, Matrix<T> y, Vector<float> mean,
                       Vector<float> rstd) {
  const Index count = x.extent(0), width = x.extent(1);
  const ForwardRows<T> rows{x.data(),    weight.data(), bias.data(), eps,  y.data(),
                            mean.data(), rstd.data(),   count,       width};
  norm_forward<NormKind::layer>(exec, "kzero::kernels::layernorm_forward", rows);
}

template <class T>
void rmsnorm_forward(const Execution& exec, Matrix<const T> x, Vector<const T> weight, float eps,
                     Matrix<T> y, Vector<float> rstd, const NormScale& scale,
                     Matrix<const T> addend) {
  const Index count = x.extent(0), width = x.extent(1);
  const T* added = addend.size() > 0 ? addend.data() : nullptr;
  const ForwardRows<T> rows{x.data(),    weight.data(), nullptr, eps,   y.data(), nullptr,
                            rstd.data(), count,         width,   scale, added};
  norm_forward<NormKind::rms>(exec, "kzero::kernels::rmsnorm_forward", rows);
}

template <class T>
void layernorm_backward(const Execution& exec, const LayerNormInput<T>& input, Matrix<const T> dy,
                        const LayerNormGradients<T>& gradients, Matrix<float> partial) {
  const auto& [dx, dx_accumulate, dweight, dbias, accumulate, dx_before, dx_after] = gradients;
  const bool sums_dx = dx_before.size() > 0;
  KZERO_EXPECT(dx_after.size() == dx_before.size());
  constexpr const char* label = "kzero::kernels::layernorm_backward";
  const auto rows = backward_rows<T>(input, input.mean.data(), dy, gradients, sums_dx);
  if (tensor::on_host && sums_dx) {
    sum_rows<T>(exec, dx, accumulate, dx_before, partial);
    backward<NormKind::layer>(exec, label, rows, partial);
    sum_groups<T>(exec, partial, accumulate, {dweight, dbias});
    sum_rows<T>(exec, dx, accumulate, dx_after, partial);
    return;
  }
  backward<NormKind::layer>(exec, label, rows, partial);
  if (sums_dx) {
    sum_groups<T>(exec, partial, accumulate, {dweight, dbias, dx_after, dx_before});
  } else if (dweight.size() > 0) {
    sum_groups<T>(exec, partial, accumulate, {dweight, dbias});
  }
}

template <class T>
void rmsnorm_backward(const Execution& exec, const RmsNormInput<T>& input, Matrix<const T> dy,
                      const RmsNormGradients<T>& gradients, Matrix<float> partial) {
  const auto rows = backward_rows<T>(input, nullptr, dy, gradients, false, input.scale);
  backward<NormKind::rms>(exec, "kzero::kernels::rmsnorm_backward", rows, partial);
  if (gradients.dweight.size() == 0) return;
  sum_groups<T>(exec, partial, gradients.accumulate, {gradients.dweight});
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void layernorm_forward<T>(const Execution&, Matrix<const T>, Vector<const T>,           \
                                     Vector<const T>, float, Matrix<T>, Vector<float>,             \
                                     Vector<float>);                                               \
  template void layernorm_backward<T>(const Execution&, const LayerNormInput<T>&, Matrix<const T>, \
                                      const LayerNormGradients<T>&, Matrix<float>);                \
  template void rmsnorm_forward<T>(const Execution&, Matrix<const T>, Vector<const T>, float,      \
                                   Matrix<T>, Vector<float>, const NormScale&, Matrix<const T>);   \
  template void rmsnorm_backward<T>(const Execution&, const RmsNormInput<T>&, Matrix<const T>,     \
                                    const RmsNormGradients<T>&, Matrix<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
