// Inputs and error bounds for numerical tests. A test's reference is a plain loop in double that
// also sums the possible fp32 error. No bound is measured or tuned.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/float16.hpp"
#include "base/philox.hpp"
#include "base/types.hpp"

namespace kzero::tests {

/// Unit round-off: half the distance from 1 to the next number, for 24, 8 and 11 significant bits.
template <class T>
inline constexpr double round_off = 0x1p-24;
template <>
inline constexpr double round_off<bf16> = 0x1p-8;
template <>
inline constexpr double round_off<fp16> = 0x1p-11;

inline constexpr double u = round_off<float>;

/// Bound on the relative error of `count` fp32 roundings in a row (Higham's gamma). A sum of n
/// terms in any order has an error of at most gamma(n - 1) times the sum of magnitudes.
inline double gamma(Index count) {
  const double total = static_cast<double>(count) * u;
  return total / (1 - total);
}

/// The bound on the relative error of hosts stated in src/kernels/exponential.hpp, which has its
/// own test.
inline constexpr double host_exponential_error = 2e-7;

/// A value in double and the allowed error of the computed value.
struct Bounded {
  double value = 0;
  double error = 0;
};

/// Adds the rounding of an fp32 result to T to the bound: relative, or half the smallest subnormal.
template <class T>
Bounded stored(double value, double error) {
  if constexpr (dtype_of<T> == Dtype::fp32) {
    return {value, error};
  } else {
    const double smallest = dtype_of<T> == Dtype::fp16 ? 0x1p-25 : 0x1p-134;
    return {value, error + round_off<T> * (std::abs(value) + error) + smallest};
  }
}

template <class T>
double as_double(T value) {
  return static_cast<double>(static_cast<float>(value));
}

/// Deterministic numbers, uniform in [-scale, scale).
template <class T>
std::vector<T> numbers(Index count, std::uint64_t seed, double scale = 1) {
  std::vector<T> values(count);
  for (Index i = 0; i < count; ++i) {
    const std::uint32_t word = philox(seed, static_cast<std::uint64_t>(i), 0).word[0];
    values[i] = static_cast<T>(static_cast<float>((word * 0x1p-31 - 1) * scale));
  }
  return values;
}

/// Expects every element within its bound, which NaN never is. Names the first element that is not.
template <class T>
void expect_close(const std::vector<T>& actual, const std::vector<Bounded>& expected,
                  const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double distance = std::abs(as_double(actual[i]) - expected[i].value);
    if (!(distance <= expected[i].error)) {
      FAIL() << what << ": element " << i << " of " << actual.size() << " is "
             << as_double(actual[i]) << ", expected " << expected[i].value << " within "
             << expected[i].error;
    }
  }
}

}  // namespace kzero::tests
