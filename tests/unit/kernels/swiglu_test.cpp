#include "kernels/swiglu.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

/// sigmoid(g), its complement, and the fp32 errors of both. The value has the error of e^-g and two
/// roundings. e^-g saturates at e^88, which adds less than 2^-126. The complement is e^-g times the
/// value. It has the error of e^-g twice and three roundings. If e^-g saturates, the value is
/// subnormal, and its rounding adds at most four units.
struct Logistic {
  double value, complement, value_error, complement_error;

  explicit Logistic(double g)
      : value(1 / (1 + std::exp(-g))),
        complement(1 / (1 + std::exp(g))),
        value_error(value * (complement * exponential_error(g) + gamma(2)) +
                    std::numeric_limits<float>::min()),
        complement_error(complement * (2 * exponential_error(g) + gamma(7))) {}
};

template <class T>
Bounded swiglu(double g, double up) {
  const Logistic s(g);
  const double value = g * s.value * up;
  return stored<T>(value, std::abs(g * up) * s.value_error + gamma(2) * std::abs(value));
}

template <class T>
Bounded up_gradient(double g, double dy) {
  return swiglu<T>(g, dy);
}

template <class T>
Bounded gate_gradient(double g, double up, double dy) {
  const Logistic s(g);
  const double second = g * s.complement, factor = 1 + second;
  const double factor_error = std::abs(g) * s.complement_error + gamma(2) * (1 + std::abs(second));
  const double value = dy * up * s.value * factor;
  return stored<T>(value, std::abs(dy * up) * (s.value_error * (std::abs(factor) + factor_error) +
                                               s.value * factor_error) +
                              gamma(4) * std::abs(value));
}

/// Rows of gate values in [-8,8), and some far outside, then up values in [-1,1).
template <class T>
std::vector<T> gates_and_ups(Index rows, Index width) {
  auto x = numbers<T>(rows * 2 * width, 1);
  const float far[] = {0.0F, 1e4F, -1e4F, 30.0F, -30.0F, 88.5F, -88.5F};
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < width; ++j) {
      T& gate = x[i * 2 * width + j];
      const Index number = i * width + j;
      gate = static_cast<T>(number % 3 == 0 ? far[number / 3 % std::size(far)]
                                            : 8 * static_cast<float>(gate));
    }
  }
  return x;
}

template <class T>
class Swiglu : public testing::Test {};
TYPED_TEST_SUITE(Swiglu, Elements, );

TYPED_TEST(Swiglu, ForwardMatchesThePlainLoop) {
  using T = TypeParam;
  for_each_shape([](Index rows, Index width, const std::string& name) {
    const auto x = gates_and_ups<T>(rows, width);
    const Guarded<T> input(x), output(rows * width);
    swiglu_forward<T>(Execution(), input.matrix(rows, 2 * width), output.matrix(rows, width));
    std::vector<Bounded> expected;
    for (Index i = 0; i < rows; ++i) {
      const T* gate = &x[i * 2 * width];
      for (Index j = 0; j < width; ++j) {
        expected.push_back(swiglu<T>(tests::as_double(gate[j]), tests::as_double(gate[width + j])));
      }
    }
    expect_close(output.host(), expected, name);
    EXPECT_TRUE(tests::same_bits(input.host(), x));
  });
}

TYPED_TEST(Swiglu, BackwardMatchesThePlainLoop) {
  using T = TypeParam;
  for_each_shape([](Index rows, Index width, const std::string& name) {
    const auto x = gates_and_ups<T>(rows, width), dy = numbers<T>(rows * width, 2);
    // The second half of each row is NaN on entry.
    std::vector<T> before(x.size(), static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
    std::vector<Bounded> expected(x.size());
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < width; ++j) {
        const Index at = i * 2 * width + j;
        before[at] = dy[i * width + j];
        const double g = tests::as_double(x[at]), up = tests::as_double(x[at + width]),
                     d = tests::as_double(before[at]);
        expected[at] = gate_gradient<T>(g, up, d);
        expected[at + width] = up_gradient<T>(g, d);
      }
    }
    const Guarded<T> input(x), gradient(before);
    swiglu_backward<T>(Execution(), input.matrix(rows, 2 * width),
                       gradient.matrix(rows, 2 * width));
    expect_close(gradient.host(), expected, name);
    EXPECT_TRUE(tests::same_bits(input.host(), x));
  });
}

TEST(SwigluReference, GradientsAreTheSlopes) {
  // Central differences: an error of h^2 / 6 times a third derivative below 1, and of 2^-52 / h.
  const double h = 1e-4, up = 0.7;
  for (double g = -6; g <= 6; g += 0.37) {
    const auto y = [](double gate, double value) { return swiglu<float>(gate, value).value; };
    EXPECT_NEAR(gate_gradient<float>(g, up, 1).value, (y(g + h, up) - y(g - h, up)) / (2 * h),
                1e-8);
    EXPECT_NEAR(up_gradient<float>(g, 1).value, (y(g, up + h) - y(g, up - h)) / (2 * h), 1e-8);
  }
}

}  // namespace

}  // namespace kzero::kernels
