#include "kernels/rotary.hpp"

namespace kzero::kernels {

namespace {

// On devices a thread processes a head, whose halves often have 64 elements. Eight lanes move 128
// bytes of 16-bit elements at once.
constexpr int head_threads = 16, head_lanes = 8;

// Size of a team's scratch, which holds a sum of the weights' gradients for each thread. It leaves
// room for Kokkos in the 48 KiB of a launch.
constexpr Index sums_bytes = 32768;

using ThreadSums = Kokkos::View<float**, Execution::scratch_memory_space, Kokkos::MemoryUnmanaged>;

int threads_for(Index heads) {
  return team_size(static_cast<int>(std::min<Index>(heads, head_threads)));
}

template <class V>
KOKKOS_INLINE_FUNCTION Pair<V> rotate(V a, V b, V cos, V sin) {
  return {Arithmetic<V>::fma(a, cos, -(b * sin)), Arithmetic<V>::fma(b, cos, a * sin)};
}

/// One head's norm. A null weight means no norm.
template <class T>
struct HeadNorm {
  const T* weight;
  float eps, offset;
};

/// The norms of a row's heads, q's before k's.
template <class T>
struct RowNorms {
  const T *q_weight, *k_weight;
  float eps, offset;
  Index heads;

  RowNorms(const RotaryShape& shape, const HeadNorms<T>& norms)
      : q_weight(norms.q_weight.size() > 0 ? norms.q_weight.data() : nullptr),
        k_weight(norms.k_weight.size() > 0 ? norms.k_weight.data() : nullptr),
        eps(norms.eps),
        offset(norms.offset),
        heads(shape.heads) {}

  KOKKOS_INLINE_FUNCTION HeadNorm<T> of(Index head) const {
    return {head < heads ? q_weight : k_weight, eps, offset};
  }
};

template <class T>
KOKKOS_INLINE_FUNCTION float head_rstd(const Lanes& thread, Index width, float eps, const T* x) {
  const auto square = [](float value) { return value * value; };
  const float mean = sum_of(thread, width, square, x) / static_cast<float>(width);
  return 1.0F / Kokkos::sqrt(mean + eps);
}

/// Norms a head if the norm has weights, then rotates it. `direction` is 1, or -1 for the
/// transpose.
template <class T>
KOKKOS_INLINE_FUNCTION void rotate_head(const Lanes& thread, Index half, const float* angles,
                                        float direction, const HeadNorm<T>& norm, const T* x,
                                        T* out) {
  const float* cos = angles;
  const float* sin = angles + half;
  if (norm.weight == nullptr) {
    const auto f = [=](auto a, auto b, auto c, auto s) { return rotate(a, b, c, direction * s); };
    map_pairs(thread, half, out, out + half, f, x, x + half, cos, sin);
  } else {
    const float r = head_rstd(thread, 2 * half, norm.eps, x);
    const float o = norm.offset;
    const auto f = [=](auto a, auto b, auto c, auto s, auto wa, auto wb) {
      return rotate(a * r * (wa + o), b * r * (wb + o), c, direction * s);
    };
    map_pairs(thread, half, out, out + half, f, x, x + half, cos, sin, norm.weight,
              norm.weight + half);
  }
}

RowPositions positions(const RotaryShape& shape, const Documents& documents) {
  return {documents, {shape.first_row, shape.sequence}};
}

/// Row i has position position_of(i).
template <class T, class Positions>
void rotate_rows(const Execution& exec, const char* label, const RotaryShape& shape,
                 const Positions& position_of, Matrix<const float> table, float direction,
                 const RowNorms<T>& norms, Matrix<const T> in, Matrix<T> out) {
  const Index heads = shape.heads + shape.kv_heads, width = shape.head_width;
  Kokkos::parallel_for(
      label,
      Policy(exec, static_cast<int>(in.extent(0)), threads_for(heads), vector_length(head_lanes)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        const float* angles = &table(position_of(i), 0);
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads), [&](Index head) {
          rotate_head<T>(Lanes{team}, width / 2, angles, direction, norms.of(head),
                         &in(i, head * width), &out(i, head * width));
        });
      });
}

/// Turns the gradient of a normed and rotated head into that of x, in place in d. Adds the weights'
/// gradient to dw. This is RMSNorm's backward with d rotated back as dy.
template <class T>
KOKKOS_INLINE_FUNCTION void head_backward(const Lanes& thread, Index half, const float* angles,
                                          const HeadNorm<T>& norm, const T* x, T* d, float* dw) {
  const float* cos = angles;
  const float* sin = angles + half;
  const T* w = norm.weight;
  const T* dy = d;
  const float* sums = dw;
  const float r = head_rstd(thread, 2 * half, norm.eps, x), o = norm.offset;
  const auto product = [=](float a, float b, float c, float s, float xa, float xb, float wa,
                           float wb) {
    const auto g = rotate(a, b, c, -s);
    return Kokkos::fma(g.first * (wa + o), xa * r, g.second * (wb + o) * (xb * r));
  };
  const float mean =
      sum_of(thread, half, product, dy, dy + half, cos, sin, x, x + half, w, w + half) /
      static_cast<float>(2 * half);
  const auto add = [=](auto a, auto b, auto c, auto s, auto xa, auto xb, auto da, auto db) {
    const auto g = rotate(a, b, c, -s);
    return Pair<decltype(a)>{da + g.first * (xa * r), db + g.second * (xb * r)};
  };
  map_pairs(thread, half, dw, dw + half, add, dy, dy + half, cos, sin, x, x + half, sums,
            sums + half);
  const auto dx = [=](auto a, auto b, auto c, auto s, auto xa, auto xb, auto wa, auto wb) {
    const auto g = rotate(a, b, c, -s);
    using V = decltype(a);
    return Pair<V>{r * Arithmetic<V>::fma(g.first, wa + o, -(xa * r * mean)),
                   r * Arithmetic<V>::fma(g.second, wb + o, -(xb * r * mean))};
  };
  map_pairs(thread, half, d, d + half, dx, dy, dy + half, cos, sin, x, x + half, w, w + half);
}

/// The inputs of normed rows' backward, and d, which it overwrites. Strides are in elements.
template <class T>
struct RotaryRows {
  RotaryShape shape;
  RowPositions position_of;
  RowNorms<T> norms;
  const float* table;
  const T* x;
  T* d;
  Index x_stride, d_stride;
};

/// Processes the rows of a group. `partial` [2h] receives their sums of the weights' gradients, q's
/// first. On devices each thread of the team has its own sums, which are then added in order.
template <class T>
KOKKOS_INLINE_FUNCTION void group_backward(const Team& team, const RotaryRows<T>& rows, Index begin,
                                           Index end, float* partial) {
  const Index width = rows.shape.head_width, heads = rows.shape.heads + rows.shape.kv_heads;
  const Index threads = team.team_size();
  float* sums = partial;
  if constexpr (!tensor::on_host)
    sums = ThreadSums(team.team_scratch(0), threads, 2 * width).data();
  for_each(team, threads * 2 * width, [=](Index j) { sums[j] = 0; });
  team.team_barrier();
  for (Index i = begin; i < end; ++i) {
    const float* angles = rows.table + rows.position_of(i) * width;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads), [&](Index head) {
      float* own = sums + team.team_rank() * 2 * width;
      head_backward<T>(Lanes{team}, width / 2, angles, rows.norms.of(head),
                       rows.x + i * rows.x_stride + head * width,
                       rows.d + i * rows.d_stride + head * width,
                       head < rows.shape.heads ? own : own + width);
    });
  }
  if constexpr (!tensor::on_host) {
    team.team_barrier();
    for_each(team, 2 * width, [=](Index j) {
      float total = 0;
      for (Index thread = 0; thread < threads; ++thread) total += sums[thread * 2 * width + j];
      partial[j] = total;
    });
  }
}

template <class T>
void rows_backward(const Execution& exec, const RotaryRows<T>& rows, Index count,
                   Matrix<float> partial) {
  const Index width = rows.shape.head_width, heads = rows.shape.heads + rows.shape.kv_heads;
  const Index row_bytes = 2 * width * static_cast<Index>(sizeof(float));
  const int threads = threads_for(std::min(heads, std::max(Index{1}, sums_bytes / row_bytes)));
  Policy policy(exec, static_cast<int>(row_groups), threads, vector_length(head_lanes));
  if constexpr (!tensor::on_host) {
    policy.set_scratch_size(
        0, Kokkos::PerTeam(static_cast<int>(ThreadSums::shmem_size(threads, 2 * width))));
  }
  const Index group = ceil_div(count, row_groups);
  Kokkos::parallel_for(
      "kzero::kernels::rotary_norm_backward", policy, KOKKOS_LAMBDA(const Team& team) {
        const Index first = Kokkos::min(team.league_rank() * group, count);
        group_backward(team, rows, first, Kokkos::min(first + group, count),
                       &partial(team.league_rank(), 0));
      });
}

}  // namespace

template <class T>
void rotary_forward(const Execution& exec, const RotaryShape& shape, const Documents& documents,
                    Matrix<const float> table, const HeadNorms<T>& norms, Matrix<const T> qkv,
                    Matrix<T> rotated) {
  rotate_rows<T>(exec, "kzero::kernels::rotary_forward", shape, positions(shape, documents), table,
                 1.0F, {shape, norms}, qkv, rotated);
}

template <class T>
void rotary_at(const Execution& exec, const RotaryShape& shape, Matrix<const float> table,
               Vector<const Index> positions, const HeadNorms<T>& norms, Matrix<const T> qkv,
               Matrix<T> rotated) {
  rotate_rows<T>(exec, "kzero::kernels::rotary_at", shape, positions, table, 1.0F, {shape, norms},
                 qkv, rotated);
}

template <class T>
void rotary_backward(const Execution& exec, const RotaryShape& shape, const Documents& documents,
                     Matrix<const float> table, const HeadNorms<T>& norms, Matrix<const T> qkv,
                     Matrix<T> dqkv, const HeadNormGradients<T>& gradients, Matrix<float> partial) {
  const RowPositions position_of = positions(shape, documents);
  const RowNorms<T> row_norms(shape, norms);
  if (row_norms.q_weight == nullptr) {
    rotate_rows<T>(exec, "kzero::kernels::rotary_backward", shape, position_of, table, -1.0F,
                   row_norms, dqkv, dqkv);
    return;
  }
  const Index x_stride = qkv.extent(1), d_stride = dqkv.extent(1);
  rows_backward<T>(
      exec,
      {shape, position_of, row_norms, table.data(), qkv.data(), dqkv.data(), x_stride, d_stride},
      dqkv.extent(0), partial);
  if (gradients.dq_weight.size() == 0) return;
  sum_groups<T>(exec, partial, gradients.accumulate, {gradients.dq_weight, gradients.dk_weight});
}

#define KZERO_INSTANTIATE(T)                                                                  \
  template void rotary_forward<T>(const Execution&, const RotaryShape&, const Documents&,     \
                                  Matrix<const float>, const HeadNorms<T>&, Matrix<const T>,  \
                                  Matrix<T>);                                                 \
  template void rotary_at<T>(const Execution&, const RotaryShape&, Matrix<const float>,       \
                             Vector<const Index>, const HeadNorms<T>&, Matrix<const T>,       \
                             Matrix<T>);                                                      \
  template void rotary_backward<T>(const Execution&, const RotaryShape&, const Documents&,    \
                                   Matrix<const float>, const HeadNorms<T>&, Matrix<const T>, \
                                   Matrix<T>, const HeadNormGradients<T>&, Matrix<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
