#include "optim/newton_schulz.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "support/device_memory.hpp"
#include "support/numbers.hpp"
#include "support/same_bits.hpp"

namespace kzero::optim {
namespace {

using tests::numbers;

/// The iteration in fp64 on rows x columns numbers, as written in its source: transposed if there
/// are more rows than columns.
std::vector<double> expected_of(std::vector<double> x, MatrixShape shape) {
  const auto transposed = [](const std::vector<double>& m, MatrixShape s) {
    std::vector<double> t(m.size());
    for (Index i = 0; i < s.rows; ++i) {
      for (Index j = 0; j < s.columns; ++j) t[j * s.rows + i] = m[i * s.columns + j];
    }
    return t;
  };
  if (shape.rows > shape.columns)
    return transposed(expected_of(transposed(x, shape), {shape.columns, shape.rows}),
                      {shape.columns, shape.rows});
  const Index r = shape.rows, c = shape.columns;
  double squares = 0;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= std::sqrt(squares) + 1e-7;
  for (int step = 0; step < 5; ++step) {
    std::vector<double> a(r * r), m(r * r), next(r * c);
    for (Index i = 0; i < r * r; ++i) {
      for (Index k = 0; k < c; ++k) a[i] += x[i / r * c + k] * x[i % r * c + k];
    }
    for (Index i = 0; i < r * r; ++i) {
      m[i] = -4.7750 * a[i];
      for (Index k = 0; k < r; ++k) m[i] += 2.0315 * a[i / r * r + k] * a[k * r + i % r];
    }
    for (Index i = 0; i < r * c; ++i) {
      next[i] = 3.4445 * x[i];
      for (Index k = 0; k < r; ++k) next[i] += m[i / c * r + k] * x[k * c + i % c];
    }
    x = next;
  }
  return x;
}

template <class T>
class NewtonSchulzOf : public testing::Test {
 protected:
  /// Returns the result for u, with workspace for all shapes.
  std::vector<T> result_of(const std::vector<T>& u, MatrixShape shape, double scale = 1) {
    const std::array<MatrixShape, 2> shapes{MatrixShape{97, 131}, MatrixShape{131, 97}};
    memory::Arenas measured;
    static_cast<void>(NewtonSchulz<T>(measured, shapes));
    memory::Ledger ledger;
    memory::Arenas arenas(measured, ledger);
    NewtonSchulz<T> iteration(arenas, shapes);
    const auto gemm = tensor::make_gemm(deck::GemmBackend::automatic);
    std::vector<T> result;
    // Runs twice, because the location of one run's result must not affect the next run.
    for (int time = 0; time < 2; ++time) {
      tests::to_device(u, iteration.input());
      const T* x = iteration.run({}, *gemm, shape, scale);
      Kokkos::fence();
      const auto again = tests::from_device(x, shape.elements());
      if (time == 1) {
        EXPECT_TRUE(tests::same_bits(result, again));
      }
      result = again;
    }
    return result;
  }
};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(NewtonSchulzOf, Elements, );

constexpr std::array shapes{MatrixShape{1, 1},   MatrixShape{1, 13},   MatrixShape{13, 1},
                            MatrixShape{7, 7},   MatrixShape{31, 53},  MatrixShape{53, 31},
                            MatrixShape{64, 64}, MatrixShape{97, 131}, MatrixShape{131, 97}};

/// The allowed error of a result, relative to its norm. A step multiplies an error by at most
/// 3.4445, the polynomial's largest slope, at 0. It adds the roundings of A, of A's combination and
/// of X. With the coefficients these are at most 3.4 + 2 4.8 + 4 2.0 = 21 round-offs of X. Singular
/// values already close to 1 are damped. Sums of k products are in fp32.
template <class T>
double tolerance(MatrixShape shape) {
  double growth = 0;
  for (int step = 0; step < 5; ++step) growth += std::pow(3.4445, step) / std::pow(2.0, step);
  const auto k = static_cast<double>(std::max(shape.rows, shape.columns));
  return growth * (21 * tests::round_off<T> + 9 * std::sqrt(k) * tests::u);
}

TYPED_TEST(NewtonSchulzOf, MatchesThePlainLoop) {
  using T = TypeParam;
  for (const MatrixShape shape : shapes) {
    const auto u = numbers<T>(shape.elements(), 5);
    std::vector<double> exact;
    for (const T value : u) exact.push_back(tests::as_double(value));
    const auto expected = expected_of(exact, shape);
    const auto result = this->result_of(u, shape);
    double difference = 0, total = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference += std::pow(tests::as_double(result[i]) - expected[i], 2);
      total += expected[i] * expected[i];
    }
    EXPECT_LE(std::sqrt(difference / total), tolerance<T>(shape))
        << shape.rows << " x " << shape.columns;
  }
}

TYPED_TEST(NewtonSchulzOf, KeepsAZeroMatrixZero) {
  using T = TypeParam;
  const MatrixShape shape{5, 3};
  for (const T value : this->result_of(std::vector<T>(15, T(0.0F)), shape))
    EXPECT_EQ(tests::as_double(value), 0);
}

TYPED_TEST(NewtonSchulzOf, DoesNotSeeAPowerOfTwoInScaleAndMatrix) {
  using T = TypeParam;
  const MatrixShape shape{31, 53};
  auto u = numbers<T>(shape.elements(), 6);
  const auto expected = this->result_of(u, shape, 1);
  for (T& value : u) value = static_cast<T>(static_cast<float>(value) * 64);
  EXPECT_TRUE(tests::same_bits(this->result_of(u, shape, 64), expected));
}

TEST(NewtonSchulzWork, CountsFiveStepsOfThreeProducts) {
  EXPECT_EQ(newton_schulz_operations({3, 5}), 5 * (2 * 3 * 3 * 5 + 2 * 3 * 3 * 3 + 2 * 3 * 3 * 5));
  EXPECT_EQ(newton_schulz_operations({5, 3}), newton_schulz_operations({3, 5}));
}

}  // namespace
}  // namespace kzero::optim
