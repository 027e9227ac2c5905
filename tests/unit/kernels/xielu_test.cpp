#include "kernels/xielu.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

/// Both both and their derivatives by the alphas, in double.
struct XieluScales {
  double positive, negative, d_positive, d_negative;

  XieluScales(double a, double b)
      : positive(std::log1p(std::exp(a))),
        negative(0.5 + std::log1p(std::exp(b))),
        d_positive(1 / (1 + std::exp(-a))),
        d_negative(1 / (1 + std::exp(-b))) {}
};

/// What the factor multiplies and its derivative. e^x - 1 - x is a series of terms that shrink from
/// -0.5 on, with at most 30 roundings, and a difference elsewhere.
struct XieluPart {
  Bounded value, slope;

  explicit XieluPart(double x) {
    if (x > 0) {
      value = {x * x, u * x * x};
      slope = {2 * x, 0};
      return;
    }
    const double rest = std::expm1(x) - x;
    const double difference = exponential_error(x) * std::exp(x) + gamma(3) * (1 + std::abs(x));
    const double error = x > -0.5 ? gamma(30) * rest : difference;
    value = {rest, error};
    slope = {rest + x, error + gamma(2) * (rest + std::abs(x))};
  }
};

/// A factor has at most 16 roundings, including those of exp and log1p.
template <class T>
Bounded xielu(const XieluScales& s, double x) {
  const XieluPart part(x);
  const double factor = x > 0 ? s.positive : s.negative;
  const double value = factor * part.value.value + 0.5 * x;
  const double size = factor * std::abs(part.value.value) + 0.5 * std::abs(x);
  return stored<T>(value, 2 * factor * part.value.error + gamma(20) * size);
}

template <class T>
Bounded xielu_gradient(const XieluScales& s, double x, double dy) {
  const XieluPart part(x);
  const double factor = x > 0 ? s.positive : s.negative;
  const double value = dy * (factor * part.slope.value + 0.5);
  const double size = std::abs(dy) * (factor * std::abs(part.slope.value) + 0.5);
  return stored<T>(value, 2 * std::abs(dy) * factor * part.slope.error + gamma(20) * size);
}

/// Numbers in [-4,4), zeros, and some very near 0 and far from it.
template <class T>
std::vector<T> xielu_inputs(Index count) {
  auto x = numbers<T>(count, 1, 4);
  const float far[] = {0.0F, -5e-7F, -1e-6F, 1e-6F, -1e-3F, -0.4999F, -0.5001F, 100.0F, -100.0F};
  for (Index i = 0; i < count; i += 3) x[i] = static_cast<T>(far[i / 3 % std::size(far)]);
  return x;
}

template <class T>
std::vector<T> alphas_of(float a, float b) {
  return {static_cast<T>(a), static_cast<T>(b)};
}

template <class T>
XieluScales scales_of(const std::vector<T>& alphas) {
  return {tests::as_double(alphas[0]), tests::as_double(alphas[1])};
}

template <class T>
class Xielu : public testing::Test {};
TYPED_TEST_SUITE(Xielu, Elements, );

TYPED_TEST(Xielu, ForwardMatchesThePlainLoop) {
  using T = TypeParam;
  for (const auto& alphas : {alphas_of<T>(0.2F, -1), alphas_of<T>(-30, 40)}) {
    const XieluScales both = scales_of(alphas);
    for_each_shape([&](Index rows, Index columns, const std::string& name) {
      const auto x = xielu_inputs<T>(rows * columns);
      const Guarded<T> input(x), parameters(alphas), output(rows * columns);
      xielu_forward<T>(Execution(), input.matrix(rows, columns), parameters.vector(),
                       output.matrix(rows, columns));
      std::vector<Bounded> expected;
      for (const T value : x) expected.push_back(xielu<T>(both, tests::as_double(value)));
      expect_close(output.host(), expected, name);
      EXPECT_TRUE(tests::same_bits(input.host(), x));
    });
  }
}

/// The sums have one term per element, in any order, and the previous value.
template <class T>
void check_xielu_backward(Index rows, Index columns, Accumulate accumulate,
                          const std::string& name) {
  const auto alphas = alphas_of<T>(0.2F, -1);
  const XieluScales both = scales_of(alphas);
  const auto x = xielu_inputs<T>(rows * columns), dy = numbers<T>(rows * columns, 2);
  const std::vector<float> before{3, -2};
  const Guarded<T> input(x), parameters(alphas), gradient(dy);
  const Guarded<float> partial(row_groups * 3);
  Guarded<float> sums(2);  // NaN if they are overwritten
  if (accumulate == Accumulate::yes) sums.set(before);
  xielu_backward<T>(Execution(), input.matrix(rows, columns), parameters.vector(),
                    gradient.matrix(rows, columns), {sums.vector(), accumulate},
                    partial.matrix(row_groups, 3));
  std::vector<Bounded> expected;
  double total[2] = {}, size[2] = {}, error[2] = {};
  for (Index i = 0; i < rows * columns; ++i) {
    const double xi = tests::as_double(x[i]), d = tests::as_double(dy[i]);
    expected.push_back(xielu_gradient<T>(both, xi, d));
    const XieluPart part(xi);
    const int side = xi > 0 ? 0 : 1;
    const double derivative = side == 0 ? both.d_positive : both.d_negative;
    total[side] += d * part.value.value * derivative;
    size[side] += std::abs(d * part.value.value * derivative);
    error[side] += 2 * std::abs(d) * part.value.error * derivative;
  }
  std::vector<Bounded> alpha_gradients;
  for (int side = 0; side < 2; ++side) {
    const double old = accumulate == Accumulate::yes ? static_cast<double>(before[side]) : 0;
    alpha_gradients.push_back({old + total[side], error[side] + gamma(rows * columns + 20) *
                                                                    (size[side] + std::abs(old))});
  }
  expect_close(gradient.host(), expected, name);
  expect_close(sums.host(), alpha_gradients, name + " alphas");
}

TYPED_TEST(Xielu, BackwardMatchesThePlainLoop) {
  for_each_shape([](Index rows, Index columns, const std::string& name) {
    check_xielu_backward<TypeParam>(rows, columns, Accumulate::no, name);
    check_xielu_backward<TypeParam>(rows, columns, Accumulate::yes, name + " added");
  });
}

// Several rows for each thread of a team on any back end.
TYPED_TEST(Xielu, BackwardOfManyRowsMatchesThePlainLoop) {
  check_xielu_backward<TypeParam>(17 * row_groups + 5, 8, Accumulate::no, "many rows");
}

TYPED_TEST(Xielu, BackwardWithFrozenAlphasHasTheSameBits) {
  using T = TypeParam;
  const Index rows = 7, columns = 33;
  const auto x = xielu_inputs<T>(rows * columns), dy = numbers<T>(rows * columns, 2);
  const Guarded<T> input(x), parameters(alphas_of<T>(0.2F, -1)), trained(dy), frozen(dy);
  const Guarded<float> partial(row_groups * 2), sums(2);
  const auto backward = [&](const Guarded<T>& d, const XieluSums& to) {
    xielu_backward<T>(Execution(), input.matrix(rows, columns), parameters.vector(),
                      d.matrix(rows, columns), to, partial.matrix(row_groups, 2));
  };
  backward(trained, {sums.vector()});
  backward(frozen, {});
  EXPECT_TRUE(tests::same_bits(trained.host(), frozen.host()));
}

TEST(XieluReference, GradientsAreTheSlopes) {
  // Central differences: an error of h^2 / 6 times a third derivative below 1, and of 2^-52 / h.
  const double h = 1e-4, a = 0.2, b = -1;
  const XieluScales s(a, b);
  for (double x = -6; x <= 6; x += 0.37) {
    const auto y = [](double p, double n, double at) {
      return xielu<float>(XieluScales(p, n), at).value;
    };
    EXPECT_NEAR(xielu_gradient<float>(s, x, 1).value, (y(a, b, x + h) - y(a, b, x - h)) / (2 * h),
                1e-8);
    const double part = XieluPart(x).value.value;
    EXPECT_NEAR(x > 0 ? part * s.d_positive : 0, (y(a + h, b, x) - y(a - h, b, x)) / (2 * h), 1e-7);
    EXPECT_NEAR(x > 0 ? 0 : part * s.d_negative, (y(a, b + h, x) - y(a, b - h, x)) / (2 * h), 1e-7);
  }
}

}  // namespace

}  // namespace kzero::kernels
