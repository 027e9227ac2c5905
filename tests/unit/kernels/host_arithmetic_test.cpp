#include "kernels/host/arithmetic.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/types.hpp"
#include "support/numbers.hpp"

namespace kzero::kernels {

namespace {

/// Values of every size and sign, and special cases of rounding and saturation.
std::vector<float> values() {
  std::vector<float> all = tests::numbers<float>(64, 1);
  for (const float x :
       {0.0F, 1.0F, 87.0F, 87.1F, 88.0F, 88.1F, 1e30F, 65519.0F, 65520.0F,
        std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    all.push_back(x);
    all.push_back(-x);
  }
  for (int i = 0; i < 96; ++i)
    all.push_back(std::ldexp(1.0F + static_cast<float>(i) / 256, -i / 4));
  return all;
}

template <class T>
void expect_rounded_as_one_by_one() {
  const std::vector<float> from = values();
  std::vector<T> to(from.size());
  for (std::size_t i = 0; i + host_lanes <= from.size(); i += host_lanes)
    store_rounded(to.data() + i, load_vector(from.data() + i));
  for (std::size_t i = 0; i < from.size() / host_lanes * host_lanes; ++i) {
    const auto expected = static_cast<float>(static_cast<T>(from[i]));
    const auto actual = static_cast<float>(to[i]);
    EXPECT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected))) << from[i];
  }
}

TEST(HostVector, RoundsAsTypesDo) {
  expect_rounded_as_one_by_one<float>();
  expect_rounded_as_one_by_one<bf16>();
  expect_rounded_as_one_by_one<fp16>();
}

// In x y - z t, the result tells which product was rounded.
TEST(HostArithmetic, FusesTheProductThatIsNamed) {
#if defined(__FMA__) || defined(__aarch64__)
  const auto all = tests::numbers<float>(4 * host_lanes, 1);
  const HostVector x = load_vector(all.data()), y = load_vector(all.data() + host_lanes),
                   z = load_vector(all.data() + 2 * host_lanes),
                   t = load_vector(all.data() + 3 * host_lanes);
  const HostVector first = Arithmetic<HostVector>::fma(x, y, -(z * t));
  const HostVector second = Arithmetic<HostVector>::fma(-z, t, x * y);
  int differing = 0;
  for (int i = 0; i < host_lanes; ++i) {
    volatile float product = z[i] * t[i];  // rounded
    EXPECT_EQ(first[i], std::fma(x[i], y[i], -product)) << i;
    product = x[i] * y[i];
    EXPECT_EQ(second[i], std::fma(-z[i], t[i], product)) << i;
    differing += first[i] != second[i] ? 1 : 0;
  }
  EXPECT_GT(differing, 0);
#else
  GTEST_SKIP() << "compiled for a processor without fused products";
#endif
}

TEST(HostArithmetic, GivesTheExponentialOfOneFloat) {
  const std::vector<float> from = values();
  for (std::size_t i = 0; i + host_lanes <= from.size(); i += host_lanes) {
    const HostVector result = exponential(load_vector(from.data() + i));
    for (int lane = 0; lane < host_lanes; ++lane) {
      const float x = from[i + static_cast<std::size_t>(lane)], expected = exponential(x);
      // The compiler may fuse different products in the two.
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(result[lane]));
      } else {
        EXPECT_LE(std::abs(result[lane] - expected), 2 * tests::host_exponential_error * expected)
            << x;
      }
    }
  }
}

TEST(HostArithmetic, MapsAnElementTheSameWhereverItLies) {
  const auto f = [](auto x, auto y) { return exponential(x) * y + 1.0F; };
  const auto x = tests::numbers<float>(99, 1), y = tests::numbers<float>(99, 2);
  std::vector<float> all(99);
  detail::map_vectors(Index{99}, all.data(), f, x.data(), y.data());
  for (const Index first : {1, 5, 16, 90}) {
    std::vector<float> rest(99, -1);
    detail::map_vectors(99 - first, rest.data(), f, x.data() + first, y.data() + first);
    for (Index i = 0; i < 99; ++i)
      EXPECT_EQ(rest[i], i < 99 - first ? all[first + i] : -1.0F) << first << ' ' << i;
  }
}

}  // namespace

}  // namespace kzero::kernels
