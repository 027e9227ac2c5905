#include "kernels/all_heads_norm.hpp"

namespace kzero::kernels {

namespace {

Policy all_heads_policy(const Execution& exec, std::size_t rows) {
  return {exec, static_cast<int>(rows), team_size(8), vector_length(32)};
}

/// The columns of q or of k in a row, and the columns that share their norm.
struct HeadsPart {
  Index first, width, total;
};

KOKKOS_INLINE_FUNCTION HeadsPart heads_part(const AllHeadsShape& shape, Index number) {
  if (number == 0) return {0, shape.q_width, shape.q_total};
  return {shape.q_width, shape.k_width, shape.k_total};
}

KOKKOS_INLINE_FUNCTION float all_heads_rstd(float squares, const HeadsPart& part, float eps) {
  return 1.0F / Kokkos::sqrt(squares / static_cast<float>(part.total) + eps);
}

/// Computes out [N,2] = the sums of f(i, j) over the columns j of a row's q and of its k.
template <class F>
void sum_rows_of_heads(const Execution& exec, const char* label, const AllHeadsShape& shape,
                       Matrix<float> out, const F& f) {
  Kokkos::parallel_for(
      label, all_heads_policy(exec, out.extent(0)), KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        for (Index number = 0; number < norms_of_heads; ++number) {
          const HeadsPart part = heads_part(shape, number);
          const float total = sum(team, part.width, [=](Index j) { return f(i, part.first + j); });
          Kokkos::single(Kokkos::PerTeam(team), [&] { out(i, number) = total; });
        }
      });
}

/// What the rows of a group read and write.
template <class T>
struct AllHeadsRows {
  AllHeadsShape shape;
  const T* weights;
  const T* x;
  T* d;
  Index x_stride, d_stride;
  const float *squares, *dots;  // [N,2]
};

/// Computes the gradients of row i, and adds that of the weights to dw [width].
template <class T>
KOKKOS_INLINE_FUNCTION void all_heads_row_backward(const Team& team, const AllHeadsRows<T>& rows,
                                                   Index i, float* dw) {
  for (Index number = 0; number < norms_of_heads; ++number) {
    const HeadsPart part = heads_part(rows.shape, number);
    const Index at = i * norms_of_heads + number;
    const float r = all_heads_rstd(rows.squares[at], part, rows.shape.eps);
    const float shared = r * r * r * rows.dots[at] / static_cast<float>(part.total);
    const T* x = rows.x + i * rows.x_stride + part.first;
    const T* w = rows.weights + part.first;
    T* d = rows.d + i * rows.d_stride + part.first;
    float* sums = dw + part.first;
    for_each(team, part.width, [=](Index j) {
      const float dj = static_cast<float>(d[j]), xj = static_cast<float>(x[j]);
      sums[j] += dj * (xj * r);
      d[j] = static_cast<T>(Kokkos::fma(-xj, shared, r * (dj * static_cast<float>(w[j]))));
    });
  }
}

}  // namespace

template <class T>
void row_squares(const Execution& exec, const AllHeadsShape& shape, Matrix<const T> qkv,
                 Matrix<float> squares) {
  sum_rows_of_heads(
      exec, "kzero::kernels::row_squares", shape, squares, KOKKOS_LAMBDA(Index i, Index j) {
        const float x = static_cast<float>(qkv(i, j));
        return x * x;
      });
}

template <class T>
void row_dots(const Execution& exec, const AllHeadsShape& shape, Vector<const T> weights,
              Matrix<const T> qkv, Matrix<const T> d, Matrix<float> dots) {
  sum_rows_of_heads(
      exec, "kzero::kernels::row_dots", shape, dots, KOKKOS_LAMBDA(Index i, Index j) {
        return static_cast<float>(d(i, j)) * static_cast<float>(weights(j)) *
               static_cast<float>(qkv(i, j));
      });
}

template <class T>
void all_heads_norm_forward(const Execution& exec, const AllHeadsShape& shape,
                            Vector<const T> weights, Matrix<const T> qkv,
                            Matrix<const float> squares, Matrix<T> normed) {
  Kokkos::parallel_for(
      "kzero::kernels::all_heads_norm_forward", all_heads_policy(exec, normed.extent(0)),
      KOKKOS_LAMBDA(const Team& team) {
        const Index i = team.league_rank();
        for (Index number = 0; number < norms_of_heads; ++number) {
          const HeadsPart part = heads_part(shape, number);
          const float r = all_heads_rstd(squares(i, number), part, shape.eps);
          const T* x = &qkv(i, part.first);
          const T* w = &weights(part.first);
          T* y = &normed(i, part.first);
          for_each(team, part.width, [=](Index j) {
            y[j] = static_cast<T>(static_cast<float>(x[j]) * r * static_cast<float>(w[j]));
          });
        }
      });
}

template <class T>
void all_heads_norm_backward(const Execution& exec, const AllHeadsShape& shape,
                             Vector<const T> weights, Matrix<const T> qkv,
                             Matrix<const float> squares, Matrix<const float> dots, Matrix<T> d,
                             Vector<T> dweights, Accumulate accumulate, Matrix<float> partial) {
  const Index count = d.extent(0), group = ceil_div(count, row_groups), width = shape.width();
  const AllHeadsRows<T> rows{shape,
                             weights.data(),
                             qkv.data(),
                             d.data(),
                             static_cast<Index>(qkv.extent(1)),
                             static_cast<Index>(d.extent(1)),
                             squares.data(),
                             dots.data()};
  Kokkos::parallel_for(
      "kzero::kernels::all_heads_norm_backward", all_heads_policy(exec, row_groups),
      KOKKOS_LAMBDA(const Team& team) {
        const Index first = Kokkos::min(team.league_rank() * group, count);
        const Index end = Kokkos::min(first + group, count);
        float* sums = &partial(team.league_rank(), 0);
        for_each(team, width, [=](Index j) { sums[j] = 0; });
        team.team_barrier();
        for (Index i = first; i < end; ++i) {
          all_heads_row_backward(team, rows, i, sums);
          team.team_barrier();
        }
      });
  if (dweights.size() > 0) sum_groups<T>(exec, partial, accumulate, {dweights});
}

void sum_of_ranks(const Execution& exec, Vector<const float> parts, Vector<float> out) {
  const Index count = out.size(), ranks = static_cast<Index>(parts.size()) / count;
  Kokkos::parallel_for(
      "kzero::kernels::sum_of_ranks", tensor::Range(exec, 0, count), KOKKOS_LAMBDA(Index i) {
        float total = 0;
        for (Index rank = 0; rank < ranks; ++rank) total += parts(rank * count + i);
        out(i) = total;
      });
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void row_squares<T>(const Execution&, const AllHeadsShape&, Matrix<const T>,            \
                               Matrix<float>);                                                     \
  template void row_dots<T>(const Execution&, const AllHeadsShape&, Vector<const T>,               \
                            Matrix<const T>, Matrix<const T>, Matrix<float>);                      \
  template void all_heads_norm_forward<T>(const Execution&, const AllHeadsShape&, Vector<const T>, \
                                          Matrix<const T>, Matrix<const float>, Matrix<T>);        \
  template void all_heads_norm_backward<T>(                                                        \
      const Execution&, const AllHeadsShape&, Vector<const T>, Matrix<const T>,                    \
      Matrix<const float>, Matrix<const float>, Matrix<T>, Vector<T>, Accumulate, Matrix<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
