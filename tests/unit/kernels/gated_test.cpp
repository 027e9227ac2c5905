#include "kernels/gated.hpp"

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

/// The factor of an activation x * factor(x), the excess of its derivative factor * (1 + excess),
/// and their fp32 errors.
struct ActivationFactor {
  double value, excess, value_error, excess_error;
};

struct Swiglu {
  template <class T>
  static constexpr auto forward = swiglu_forward<T>;
  template <class T>
  static constexpr auto backward = swiglu_backward<T>;

  static ActivationFactor factor(double g) {
    const Logistic s(g);
    return {s.value, g * s.complement, s.value_error, std::abs(g) * s.complement_error};
  }
};

/// The two terms of z have the same sign, so z has 7 roundings (including constants) and no
/// cancellation. Its error is a relative one of e^-z.
struct Geglu {
  template <class T>
  static constexpr auto forward = geglu_forward<T>;
  template <class T>
  static constexpr auto backward = geglu_backward<T>;

  static ActivationFactor factor(double g) {
    constexpr double slope = 2 * 0.79788456080286535588, cubic = 0.044715;
    const double z = slope * (g + cubic * g * g * g), error = std::abs(z) * gamma(7);
    const double excess = slope * (1 + 3 * cubic * g * g) * g * Logistic(z).complement;
    const Logistic s(z);
    return {s.value, excess, s.value_error + s.value * s.complement * error,
            std::abs(excess) * (2 * error + 2 * exponential_error(z) + gamma(17))};
  }
};

template <class T>
Bounded gated_product(const ActivationFactor& f, double g, double up) {
  const double value = g * f.value * up;
  return stored<T>(value, std::abs(g * up) * f.value_error + gamma(2) * std::abs(value));
}

template <class T>
Bounded gate_gradient(const ActivationFactor& f, double up, double dy) {
  const double slope = 1 + f.excess;
  const double slope_error = f.excess_error + gamma(2) * (1 + std::abs(f.excess));
  const double value = dy * up * f.value * slope;
  return stored<T>(value, std::abs(dy * up) * (f.value_error * (std::abs(slope) + slope_error) +
                                               f.value * slope_error) +
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

template <class A, class E>
struct GatedCase {
  using Activation = A;
  using Element = E;
};

template <class C>
class Gated : public testing::Test {};
using GatedCases =
    testing::Types<GatedCase<Swiglu, float>, GatedCase<Swiglu, bf16>, GatedCase<Swiglu, fp16>,
                   GatedCase<Geglu, float>, GatedCase<Geglu, bf16>, GatedCase<Geglu, fp16>>;
TYPED_TEST_SUITE(Gated, GatedCases, );

TYPED_TEST(Gated, ForwardMatchesThePlainLoop) {
  using A = typename TypeParam::Activation;
  using T = typename TypeParam::Element;
  for_each_shape([](Index rows, Index width, const std::string& name) {
    const auto x = gates_and_ups<T>(rows, width);
    const Guarded<T> input(x), output(rows * width);
    A::template forward<T>(Execution(), input.matrix(rows, 2 * width), output.matrix(rows, width));
    std::vector<Bounded> expected;
    for (Index i = 0; i < rows; ++i) {
      const T* gate = &x[i * 2 * width];
      for (Index j = 0; j < width; ++j) {
        const double g = tests::as_double(gate[j]), up = tests::as_double(gate[width + j]);
        expected.push_back(gated_product<T>(A::factor(g), g, up));
      }
    }
    expect_close(output.host(), expected, name);
    EXPECT_TRUE(tests::same_bits(input.host(), x));
  });
}

TYPED_TEST(Gated, BackwardMatchesThePlainLoop) {
  using A = typename TypeParam::Activation;
  using T = typename TypeParam::Element;
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
        expected[at] = gate_gradient<T>(A::factor(g), up, d);
        expected[at + width] = gated_product<T>(A::factor(g), g, d);
      }
    }
    const Guarded<T> input(x), gradient(before);
    A::template backward<T>(Execution(), input.matrix(rows, 2 * width),
                            gradient.matrix(rows, 2 * width));
    expect_close(gradient.host(), expected, name);
    EXPECT_TRUE(tests::same_bits(input.host(), x));
  });
}

template <class A>
void check_gated_slopes() {
  // Central differences: an error of h^2 / 6 times a third derivative below 3, and of 2^-52 / h.
  const double h = 1e-4, up = 0.7;
  for (double g = -6; g <= 6; g += 0.37) {
    const auto y = [](double gate, double value) {
      return gated_product<float>(A::factor(gate), gate, value).value;
    };
    EXPECT_NEAR(gate_gradient<float>(A::factor(g), up, 1).value,
                (y(g + h, up) - y(g - h, up)) / (2 * h), 1e-8);
    EXPECT_NEAR(gated_product<float>(A::factor(g), g, 1).value,
                (y(g, up + h) - y(g, up - h)) / (2 * h), 1e-8);
  }
}

TEST(GatedReference, GradientsAreTheSlopes) {
  check_gated_slopes<Swiglu>();
  check_gated_slopes<Geglu>();
}

}  // namespace

}  // namespace kzero::kernels
