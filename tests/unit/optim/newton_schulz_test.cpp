#include "optim/newton_schulz.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "support/device_memory.hpp"
#include "support/numbers.hpp"
#include "support/same_bits.hpp"

namespace kzero::optim {
namespace {

using tests::numbers;

using deck::Polynomials;

constexpr double polar_express[5][3] = {
    {8.28721201814563, -23.595886519098837, 17.300387312530933},
    {4.107059111542203, -2.9478499167379106, 0.5448431082926601},
    {3.9486908534822946, -2.908902115962949, 0.5518191394370137},
    {3.3184196573706015, -2.488488024314874, 0.51004894012372},
    {2.300652019954817, -1.6689039845747493, 0.4188073119525673}};

/// Returns a, b, c of a step as the papers have them.
std::array<double, 3> coefficients(Polynomials polynomials, int step) {
  if (polynomials == Polynomials::jordan) return {3.4445, -4.7750, 2.0315};
  const double(&all)[3] = polar_express[step];
  return {all[0] / 1.01, all[1] / std::pow(1.01, 3), all[2] / std::pow(1.01, 5)};
}

/// The iteration in fp64 on rows x columns numbers, as written in its source: transposed if there
/// are more rows than columns.
std::vector<double> expected_of(std::vector<double> x, MatrixShape shape, Polynomials polynomials) {
  const auto transposed = [](const std::vector<double>& m, MatrixShape s) {
    std::vector<double> t(m.size());
    for (Index i = 0; i < s.rows; ++i) {
      for (Index j = 0; j < s.columns; ++j) t[j * s.rows + i] = m[i * s.columns + j];
    }
    return t;
  };
  if (shape.rows > shape.columns)
    return transposed(expected_of(transposed(x, shape), {shape.columns, shape.rows}, polynomials),
                      {shape.columns, shape.rows});
  const Index r = shape.rows, c = shape.columns;
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double margin = polynomials == Polynomials::polar_express ? 1.01 : 1;
  for (double& value : x) value /= margin * std::sqrt(squares) + 1e-7;
  for (int step = 0; step < 5; ++step) {
    const auto [of_x, of_product, of_square] = coefficients(polynomials, step);
    std::vector<double> a(r * r), m(r * r), next(r * c);
    for (Index i = 0; i < r * r; ++i) {
      for (Index k = 0; k < c; ++k) a[i] += x[i / r * c + k] * x[i % r * c + k];
    }
    for (Index i = 0; i < r * r; ++i) {
      m[i] = of_product * a[i];
      for (Index k = 0; k < r; ++k) m[i] += of_square * a[i / r * r + k] * a[k * r + i % r];
    }
    for (Index i = 0; i < r * c; ++i) {
      next[i] = of_x * x[i];
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
  std::vector<T> result_of(const std::vector<T>& u, MatrixShape shape, double scale = 1,
                           Polynomials polynomials = Polynomials::jordan) {
    const std::array<MatrixShape, 2> shapes{MatrixShape{97, 131}, MatrixShape{131, 97}};
    memory::Arenas measured;
    static_cast<void>(NewtonSchulz<T>(measured, shapes, polynomials));
    memory::Ledger ledger;
    memory::Arenas arenas(measured, ledger);
    NewtonSchulz<T> iteration(arenas, shapes, polynomials);
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

/// The distance of a result from the plain loop, relative to its norm.
template <class T>
double distance(const std::vector<T>& result, const std::vector<T>& u, MatrixShape shape,
                Polynomials polynomials) {
  std::vector<double> exact;
  for (const T value : u) exact.push_back(tests::as_double(value));
  const auto expected = expected_of(exact, shape, polynomials);
  double difference = 0, total = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(tests::as_double(result[i]) - expected[i], 2);
    total += expected[i] * expected[i];
  }
  return std::sqrt(difference / total);
}

TYPED_TEST(NewtonSchulzOf, MatchesThePlainLoop) {
  using T = TypeParam;
  for (const MatrixShape shape : shapes) {
    const auto u = numbers<T>(shape.elements(), 5);
    EXPECT_LE(distance(this->result_of(u, shape), u, shape, Polynomials::jordan),
              tolerance<T>(shape))
        << shape.rows << " x " << shape.columns;
  }
}

// The first polynomial's terms are up to 22 and cancel to less than 2, so its roundings count for
// more than those of Jordan's.
TYPED_TEST(NewtonSchulzOf, PolarExpressMatchesThePlainLoop) {
  using T = TypeParam;
  for (const MatrixShape shape : shapes) {
    const auto u = numbers<T>(shape.elements(), 5);
    EXPECT_LE(distance(this->result_of(u, shape, 1, Polynomials::polar_express), u, shape,
                       Polynomials::polar_express),
              4 * tolerance<T>(shape))
        << shape.rows << " x " << shape.columns;
  }
}

// Singular values, on the diagonal, down to 1/500 of the norm. 16 bits round them by less than
// 0.05.
TYPED_TEST(NewtonSchulzOf, BringsSingularValuesNearOne) {
  using T = TypeParam;
  using Bounds = std::pair<double, double>;
  const double room = std::is_same_v<T, float> ? 0 : 0.05;
  for (const auto& [polynomials, bounds] :
       {std::pair{Polynomials::jordan, Bounds{0.68, 1.21}},
        std::pair{Polynomials::polar_express, Bounds{0.87, 1.13}}}) {
    std::vector<T> diagonal(64 * 64);
    for (Index i = 0; i < 64; ++i)
      diagonal[i * 64 + i] = static_cast<T>(static_cast<float>(std::pow(0.92, i)));
    const auto result = this->result_of(diagonal, {64, 64}, 1, polynomials);
    for (Index i = 0; i < 64; ++i) {
      EXPECT_GT(tests::as_double(result[i * 64 + i]), bounds.first - room) << i;
      EXPECT_LT(tests::as_double(result[i * 64 + i]), bounds.second + room) << i;
    }
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
