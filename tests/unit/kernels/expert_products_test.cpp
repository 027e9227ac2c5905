#include "kernels/expert_products.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "support/threads.hpp"
#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tensor::Accumulate;
using tensor::Transpose;

/// Experts with so many rows, and the sizes of op(W) [k,n]. Matrices of rows have further columns.
struct ExpertCase {
  std::vector<Index> rows;
  Index n, k, further;

  Index count() const { return static_cast<Index>(rows.size()); }
  Index all_rows() const { return std::accumulate(rows.begin(), rows.end(), Index{0}); }
  Index first(Index e) const { return std::accumulate(rows.begin(), rows.begin() + e, Index{0}); }
  std::string name() const {
    return std::to_string(count()) + " experts, n " + std::to_string(n) + ", k " +
           std::to_string(k);
  }
};

const ExpertCase& blocks_of_rows() {
  static const ExpertCase many{{417, 0, 1}, 70, 300, 1};  // more than one block of each kind
  return many;
}

std::vector<ExpertCase> expert_cases() {
  return {{{1}, 1, 1, 0},          {{3, 0, 5}, 7, 5, 3},      {{32, 64, 0, 32}, 64, 48, 0},
          {{6, 1, 32}, 33, 31, 1}, {{13, 32}, 130, 257, 2},   {{0, 0}, 16, 16, 0},
          {{96}, 128, 512, 64},    {{0, 2, 0, 7}, 80, 66, 2}, blocks_of_rows()};
}

/// Rows of `width` columns. Further columns, which products must not read, are NaN.
template <class T>
std::vector<T> rows_with_gaps(const ExpertCase& c, Index width, std::uint64_t seed) {
  const Index stride = width + c.further;
  std::vector<T> rows = numbers<T>(c.all_rows() * stride, seed);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<Index>(i) % stride >= width)
      rows[i] = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  }
  return rows;
}

template <class T>
struct ExpertInputs {
  explicit ExpertInputs(const ExpertCase& c)
      : x(rows_with_gaps<T>(c, c.k, 1)), w(numbers<T>(c.count() * c.n * c.k, 2)) {}

  std::vector<T> x, w;
};

/// Each expert's part of rows, and of one array of weights.
template <class W>
std::vector<ExpertRows<W>> parts_of(const ExpertCase& c, W* weights) {
  std::vector<ExpertRows<W>> parts;
  for (Index e = 0; e < c.count(); ++e)
    parts.push_back({c.first(e), c.rows[e], weights + e * c.n * c.k});
  return parts;
}

WeightShape shape_of(const ExpertCase& c, Transpose transpose) {
  return transpose == Transpose::yes ? WeightShape{c.n, c.k} : WeightShape{c.k, c.n};
}

/// The first columns of y, whose further columns must keep their values.
template <class T>
std::vector<T> products_of(const Execution& exec, const ExpertCase& c, Transpose transpose,
                           const ExpertInputs<T>& in) {
  const Index rows = c.all_rows(), stride = c.n + c.further;
  const Guarded<T> x(in.x), w(in.w), y(std::vector<T>(rows * stride, T(7.0F)));
  const auto parts = parts_of<const T>(c, w.data());
  const auto gemm = tensor::make_gemm(tensor::GemmBackend::automatic);
  expert_products<T>(exec, *gemm, parts, shape_of(c, transpose), transpose,
                     x.matrix(rows, c.k + c.further), y.matrix(rows, stride));
  exec.fence("kzero::tests::products");
  std::vector<T> found;
  const std::vector<T> all = y.host();
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < stride; ++j) {
      if (j < c.n) {
        found.push_back(all[i * stride + j]);
      } else {
        EXPECT_EQ(tests::as_double(all[i * stride + j]), 7) << c.name();
      }
    }
  }
  return found;
}

template <class T>
class ExpertProducts : public testing::Test {};
TYPED_TEST_SUITE(ExpertProducts, Elements, );

TYPED_TEST(ExpertProducts, MatchThePlainLoop) {
  using T = TypeParam;
  for (const ExpertCase& c : expert_cases()) {
    for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
      const ExpertInputs<T> in(c);
      std::vector<Bounded> expected;
      for (Index e = 0; e < c.count(); ++e) {
        for (Index i = c.first(e); i < c.first(e) + c.rows[e]; ++i) {
          for (Index j = 0; j < c.n; ++j) {
            double sum = 0, size = 0;
            for (Index k = 0; k < c.k; ++k) {
              const Index at = transpose == Transpose::yes ? j * c.k + k : k * c.n + j;
              const double term = tests::as_double(in.x[i * (c.k + c.further) + k]) *
                                  tests::as_double(in.w[e * c.n * c.k + at]);
              sum += term, size += std::abs(term);
            }
            expected.push_back(stored<T>(sum, gamma(c.k + 1) * size));
          }
        }
      }
      expect_close(products_of(Execution(), c, transpose, in), expected, c.name());
    }
  }
}

template <class T, class Out>
std::vector<Out> gradients_of(const Execution& exec, const ExpertCase& c, const std::vector<T>& a,
                              const std::vector<T>& b, Accumulate accumulate) {
  const Index rows = c.all_rows();
  const Guarded<T> of_rows(a), of_columns(b);
  Guarded<Out> gradient(c.count() * c.n * c.k);
  if (accumulate == Accumulate::yes) gradient.set(numbers<Out>(c.count() * c.n * c.k, 5));
  const auto parts = parts_of<Out>(c, gradient.data());
  const auto gemm = tensor::make_gemm(tensor::GemmBackend::automatic);
  expert_gradients<T, Out>(exec, *gemm, parts, {c.n, c.k}, of_rows.matrix(rows, c.n + c.further),
                           of_columns.matrix(rows, c.k + c.further), accumulate);
  exec.fence("kzero::tests::gradients");
  return gradient.host();
}

template <class T, class Out>
void check_gradients(const ExpertCase& c, Accumulate accumulate) {
  const auto a = rows_with_gaps<T>(c, c.n, 3);
  const auto b = rows_with_gaps<T>(c, c.k, 4);
  const auto before = numbers<Out>(c.count() * c.n * c.k, 5);
  std::vector<Bounded> expected;
  for (Index e = 0; e < c.count(); ++e) {
    for (Index i = 0; i < c.n; ++i) {
      for (Index j = 0; j < c.k; ++j) {
        double sum = 0;
        if (accumulate == Accumulate::yes) sum = tests::as_double(before[expected.size()]);
        double size = std::abs(sum);
        for (Index r = c.first(e); r < c.first(e) + c.rows[e]; ++r) {
          const double term = tests::as_double(a[r * (c.n + c.further) + i]) *
                              tests::as_double(b[r * (c.k + c.further) + j]);
          sum += term, size += std::abs(term);
        }
        expected.push_back(stored<Out>(sum, gamma(c.rows[e] + 2) * size));
      }
    }
  }
  expect_close(gradients_of<T, Out>(Execution(), c, a, b, accumulate), expected, c.name());
}

TYPED_TEST(ExpertProducts, GradientsMatchThePlainLoop) {
  for (const ExpertCase& c : expert_cases()) {
    for (const Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
      check_gradients<TypeParam, TypeParam>(c, accumulate);
      check_gradients<TypeParam, float>(c, accumulate);
    }
  }
}

template <class T>
std::vector<T> row_of_products(const std::vector<T>& rows, Index i, Index width) {
  return {rows.begin() + i * width, rows.begin() + (i + 1) * width};
}

template <class T>
void expect_rows_as_alone() {
  for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
    for (const ExpertCase& c : expert_cases()) {
      if (c.count() > 1 && c.n < 70) continue;
      const ExpertInputs<T> in(c);
      const std::vector<T> together = products_of(Execution(), c, transpose, in);
      const Index stride = c.k + c.further;
      for (Index i = 0; i < c.rows[0]; i += 5) {
        for (const Index before : {0, 1, 4}) {  // other rows of the expert, before it and after
          ExpertCase few{{before + 1 + before % 3}, c.n, c.k, c.further};
          ExpertInputs<T> others(few);
          std::copy_n(in.x.begin() + i * stride, stride, others.x.begin() + before * stride);
          others.w.assign(in.w.begin(), in.w.begin() + c.n * c.k);
          const std::vector<T> found = products_of(Execution(), few, transpose, others);
          EXPECT_TRUE(tests::same_bits(row_of_products(found, before, c.n),
                                       row_of_products(together, i, c.n)))
              << "row " << i << ", alone at " << before << ", " << c.name();
        }
      }
    }
  }
}

// A document would change the bits of another one through an expert that both choose.
TYPED_TEST(ExpertProducts, ARowDoesNotDependOnTheOthers) {
  if constexpr (tensor::on_host) {
    expect_rows_as_alone<TypeParam>();
  } else {
    GTEST_SKIP() << "a device's library chooses its code by the number of rows";
  }
}

TYPED_TEST(ExpertProducts, BitsDoNotDependOnTheNumberOfThreads) {
  using T = TypeParam;
  const auto execs = tests::thread_counts();
  const ExpertCase& c = blocks_of_rows();
  const ExpertInputs<T> in(c);
  const auto a = rows_with_gaps<T>(c, c.n, 3);
  const auto results = [&](const Execution& exec) {
    return std::pair(products_of(exec, c, Transpose::no, in),
                     gradients_of<T, T>(exec, c, a, in.x, Accumulate::no));
  };
  const auto first = results(execs.front());
  for (const Execution& exec : execs) {
    const auto found = results(exec);
    EXPECT_TRUE(tests::same_bits(found.first, first.first));
    EXPECT_TRUE(tests::same_bits(found.second, first.second));
  }
}

}  // namespace

}  // namespace kzero::kernels
