#include "kernels/gelu.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

constexpr double root_two_over_pi = 0.79788456080286535588;
constexpr double cubic = 0.044715;

/// tanh of the inner argument. Its two terms have one sign, so the argument carries 7 roundings
/// (constants included) and no cancellation; z tanh'(z) never exceeds 0.45.
Bounded inner_tanh(double x) {
  const double t = std::tanh(root_two_over_pi * (x + cubic * x * x * x));
  return {t, 0.45 * gamma(7) + tests::tangent_error * std::abs(t)};
}

template <class T>
Bounded gelu(double x) {
  const auto [t, t_error] = inner_tanh(x);
  const double value = 0.5 * x * (1 + t);
  return stored<T>(value, 0.5 * std::abs(x) * (t_error + 2 * u) + gamma(3) * std::abs(value));
}

template <class T>
Bounded gelu_gradient(double x, double d) {
  const auto [t, t_error] = inner_tanh(x);
  const double inner = root_two_over_pi * (1 + 3 * cubic * x * x);
  const double first = 0.5 * (1 + t), second = 0.5 * x * (1 - t * t) * inner;
  // 1 - t^2 may cancel: 2 |t| times the error of t, and the roundings of t^2 and of the difference.
  const double error = 0.5 * (t_error + 2 * u) + 0.5 * std::abs(x) * inner * (2 * t_error + 2 * u) +
                       gamma(9) * (std::abs(first) + std::abs(second));
  return stored<T>(d * (first + second), std::abs(d) * error + u * std::abs(d * (first + second)));
}

template <class T>
class Gelu : public testing::Test {};
TYPED_TEST_SUITE(Gelu, Elements, );

/// Numbers in [-6,6) where the function bends, and a few far out.
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
    const double h = 1e-4, slope = (gelu<float>(x + h).value - gelu<float>(x - h).value) / (2 * h);
    EXPECT_NEAR(gelu_gradient<float>(x, 1).value, slope, 1e-8);
  }
}

}  // namespace

}  // namespace kzero::kernels
