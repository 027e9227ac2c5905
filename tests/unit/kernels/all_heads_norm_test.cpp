#include "kernels/all_heads_norm.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

/// Rows of q, k and further columns, of one rank of two. The other rank's sums are given.
struct Heads {
  Index rows, q_width, k_width, further;

  AllHeadsShape shape() const { return {q_width, k_width, 2 * q_width, 2 * k_width, 1e-6F}; }
  Index width() const { return q_width + k_width; }
  Index stride() const { return width() + further; }
  Index norm_of(Index column) const { return column < q_width ? 0 : 1; }
};

constexpr Heads all_heads_cases[] = {
    {1, 1, 1, 0}, {5, 7, 3, 3}, {33, 64, 32, 32}, {70, 130, 13, 26}, {2 * row_groups + 3, 5, 2, 1}};

template <class T>
class AllHeadsNorm : public testing::Test {};
TYPED_TEST_SUITE(AllHeadsNorm, Elements, );

/// The inputs of a case, the sums of both ranks, and their values in double.
template <class T>
struct Inputs {
  explicit Inputs(const Heads& of)
      : heads(of),
        x(numbers<T>(of.rows * of.stride(), 1, 2)),
        w(numbers<T>(of.width(), 2)),
        d(numbers<T>(of.rows * of.stride(), 3)),
        others(numbers<float>(of.rows * norms_of_heads, 4, 3)) {}

  double x_at(Index i, Index j) const { return tests::as_double(x[i * heads.stride() + j]); }
  double d_at(Index i, Index j) const { return tests::as_double(d[i * heads.stride() + j]); }
  double w_at(Index j) const { return tests::as_double(w[j]); }

  /// The sum over both ranks of f(j), for the columns j of q or of k in row i.
  template <class F>
  double sum(Index i, Index norm, const F& f) const {
    double total = std::abs(static_cast<double>(others[i * norms_of_heads + norm]));
    for (Index j = 0; j < heads.width(); ++j) total += heads.norm_of(j) == norm ? f(j) : 0;
    return total;
  }
  double squares(Index i, Index norm) const {
    return sum(i, norm, [&](Index j) { return x_at(i, j) * x_at(i, j); });
  }
  double dots(Index i, Index norm) const {
    return sum(i, norm, [&](Index j) { return d_at(i, j) * w_at(j) * x_at(i, j); });
  }
  double total(Index norm) const {
    return static_cast<double>(2 * (norm == 0 ? heads.q_width : heads.k_width));
  }
  double rstd(Index i, Index norm) const {
    return 1 / std::sqrt(squares(i, norm) / total(norm) + 1e-6);
  }

  /// Adds the other rank's sums to those of this rank, as the program does.
  Guarded<float> of_both(const Guarded<float>& own) const {
    std::vector<float> parts = own.host();
    for (const float other : others) parts.push_back(std::abs(other));
    const Guarded<float> from(parts);
    Guarded<float> out(static_cast<Index>(others.size()));
    sum_of_ranks(Execution(), from.vector(), out.vector());
    Kokkos::fence("kzero::kernels::summed");
    return Guarded<float>(out.host());
  }

  Heads heads;
  std::vector<T> x, w, d;
  std::vector<float> others;  // of the other rank, by their absolute values
};

template <class T>
Guarded<float> squares_of(const Inputs<T>& in, const Guarded<T>& qkv) {
  const Guarded<float> own(in.heads.rows * norms_of_heads);
  row_squares<T>(Execution(), in.heads.shape(), qkv.matrix(in.heads.rows, in.heads.stride()),
                 own.matrix(in.heads.rows, norms_of_heads));
  Kokkos::fence("kzero::kernels::squared");
  return in.of_both(own);
}

TYPED_TEST(AllHeadsNorm, ForwardMatchesThePlainLoop) {
  using T = TypeParam;
  for (const Heads& heads : all_heads_cases) {
    const Inputs<T> in(heads);
    const Guarded<T> qkv(in.x), weights(in.w), normed(heads.rows * heads.width());
    const Guarded<float> squares = squares_of(in, qkv);
    all_heads_norm_forward<T>(
        Execution(), heads.shape(), weights.vector(), qkv.matrix(heads.rows, heads.stride()),
        squares.matrix(heads.rows, norms_of_heads), normed.matrix(heads.rows, heads.width()));
    std::vector<Bounded> expected;
    for (Index i = 0; i < heads.rows; ++i) {
      for (Index j = 0; j < heads.width(); ++j) {
        const double y = in.x_at(i, j) * in.rstd(i, heads.norm_of(j)) * in.w_at(j);
        expected.push_back(stored<T>(y, gamma(heads.width() + 12) * std::abs(y)));
      }
    }
    expect_close(normed.host(), expected, "rows of " + std::to_string(heads.width()));
  }
}

TYPED_TEST(AllHeadsNorm, BackwardMatchesThePlainLoop) {
  using T = TypeParam;
  for (const Heads& heads : all_heads_cases) {
    const Inputs<T> in(heads);
    const Index rows = heads.rows, width = heads.width();
    const Guarded<T> qkv(in.x), weights(in.w), d(in.d), dweights(width);
    const Guarded<float> squares = squares_of(in, qkv), own(rows * norms_of_heads),
                         partial(row_groups * width);
    row_dots<T>(Execution(), heads.shape(), weights.vector(), qkv.matrix(rows, heads.stride()),
                d.matrix(rows, heads.stride()), own.matrix(rows, norms_of_heads));
    Kokkos::fence("kzero::kernels::dotted");
    const Guarded<float> dots = in.of_both(own);
    all_heads_norm_backward<T>(
        Execution(), heads.shape(), weights.vector(), qkv.matrix(rows, heads.stride()),
        squares.matrix(rows, norms_of_heads), dots.matrix(rows, norms_of_heads),
        d.matrix(rows, heads.stride()), dweights.vector(), Accumulate::no,
        partial.matrix(row_groups, width));
    std::vector<Bounded> dx, dw(width);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < heads.stride(); ++j) {
        const double before = in.d_at(i, j);
        if (j >= width) {  // v's gradient stays
          dx.push_back({before, 0});
          continue;
        }
        const Index norm = heads.norm_of(j);
        const double r = in.rstd(i, norm), x = in.x_at(i, j), direct = r * before * in.w_at(j);
        const double shared = x * r * r * r * in.dots(i, norm) / in.total(norm);
        const double size = std::abs(direct) + std::abs(shared) + x * x * r * r * r;
        dx.push_back(stored<T>(direct - shared, gamma(4 * width + 40) * size));
        dw[j].value += before * x * r;
        dw[j].error += gamma(rows + width + 20) * std::abs(before * x * r);
      }
    }
    for (Bounded& sum : dw) sum = stored<T>(sum.value, sum.error);
    expect_close(d.host(), dx, "d of rows of " + std::to_string(width));
    expect_close(dweights.host(), dw, "dw of rows of " + std::to_string(width));
  }
}

}  // namespace

}  // namespace kzero::kernels
