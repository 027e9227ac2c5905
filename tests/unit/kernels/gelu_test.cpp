#include "kernels/gelu.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

constexpr double slope = 2 * 0.79788456080286535588;
constexpr double cubic = 0.044715;

/// The factor of x in the GELU, and the relative error of e^-z. The two terms of z have the same
/// sign, so z has 7 roundings (including constants) and no cancellation.
struct Sigmoid {
  double value, complement, error;

  explicit Sigmoid(double x) {
    const double z = slope * (x + cubic * x * x * x);
    value = 1 / (1 + std::exp(-z));
    complement = 1 / (1 + std::exp(z));
    error = std::abs(z) * gamma(7) + exponential_error(z);
  }

  /// The error of the value. e^-z saturates at e^88, which adds less than 2^-126.
  double value_error() const {
    return value * (complement * error + gamma(2)) + std::numeric_limits<float>::min();
  }
};

template <class T>
Bounded gelu(double x) {
  const Sigmoid s(x);
  const double value = x * s.value;
  return stored<T>(value, std::abs(x) * s.value_error() + u * std::abs(value));
}

template <class T>
Bounded gelu_gradient(double x, double d) {
  const Sigmoid s(x);
  const double inner = slope * (1 + 3 * cubic * x * x);
  const double second = std::abs(x * s.complement * inner);
  const double factor = 1 + x * s.complement * inner;
  // The complement is e^-z times the value, and includes the error of e^-z again.
  const double factor_error = second * (2 * s.error + gamma(10)) + u;
  const double value = d * s.value * factor;
  return stored<T>(value, std::abs(d) * (s.value_error() * (1 + second) + s.value * factor_error) +
                              gamma(3) * std::abs(value));
}

template <class T>
class Gelu : public testing::Test {};
TYPED_TEST_SUITE(Gelu, Elements, );

/// Numbers in [-6,6), where the function bends, and a few far outside.
template <class T>
std::vector<T> inputs(Index count) {
  auto x = numbers<T>(count, 1, 6);
  const float far[] = {0.0F, 1e4F, -1e4F, 30.0F, -30.0F};
  for (std::size_t i = 0; i < x.size() && i < std::size(far); ++i) x[x.size() - 1 - i] = T(far[i]);
  return x;
}

TYPED_TEST(Gelu, ForwardMatchesThePlainLoop) {
  using T = TypeParam;
  for_each_shape([](Index rows, Index width, const std::string& name) {
    const auto h = inputs<T>(rows * width);
    const Guarded<T> input(h), output(rows * width);
    gelu_forward<T>(Execution(), input.matrix(rows, width), output.matrix(rows, width));
    std::vector<Bounded> expected;
    for (const T x : h) expected.push_back(gelu<T>(tests::as_double(x)));
    expect_close(output.host(), expected, name);
    EXPECT_TRUE(tests::same_bits(input.host(), h));
  });
}

TYPED_TEST(Gelu, BackwardMatchesThePlainLoop) {
  using T = TypeParam;
  for_each_shape([](Index rows, Index width, const std::string& name) {
    const auto h = inputs<T>(rows * width), d = numbers<T>(rows * width, 2);
    const Guarded<T> input(h), gradient(d);
    gelu_backward<T>(Execution(), input.matrix(rows, width), gradient.matrix(rows, width));
    std::vector<Bounded> expected;
    for (std::size_t i = 0; i < h.size(); ++i) {
      expected.push_back(gelu_gradient<T>(tests::as_double(h[i]), tests::as_double(d[i])));
    }
    expect_close(gradient.host(), expected, name);
    EXPECT_TRUE(tests::same_bits(input.host(), h));
  });
}

TEST(GeluReference, GradientIsTheSlope) {
  // Central differences: an error of h^2 / 6 times a third derivative below 3, and of 2^-52 / h.
  for (double x = -6; x <= 6; x += 0.37) {
    const double h = 1e-4, rise = (gelu<float>(x + h).value - gelu<float>(x - h).value) / (2 * h);
    EXPECT_NEAR(gelu_gradient<float>(x, 1).value, rise, 1e-8);
  }
}

}  // namespace

}  // namespace kzero::kernels
