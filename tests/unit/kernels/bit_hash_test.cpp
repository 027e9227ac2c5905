#include "kernels/bit_hash.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "base/philox.hpp"
#include "support/threads.hpp"
#include "unit/kernels/cases.hpp"

namespace kzero::kernels {
namespace {

constexpr Index counts[] = {0, 1, 2, 3, 5, 257, 2048, 4099, 20011};

template <class T>
std::uint64_t hash_of(const Execution& exec, const std::vector<T>& values) {
  const Guarded<T> x(values);
  const Guarded<std::uint64_t> hash(1);
  hash_bits<T>(exec, x.vector(), hash.data());
  exec.fence("kzero::tests::hashed");
  return hash.host().front();
}

template <class T>
std::uint64_t hash_of(const std::vector<T>& values) {
  return hash_of(Execution(), values);
}

/// A plain loop over 8-byte words, with zeros after the last element.
template <class T>
std::uint64_t plain_hash(const std::vector<T>& values) {
  std::uint64_t sum = 0, place = 0;
  constexpr std::size_t per_word = 8 / sizeof(T);
  for (std::size_t begin = 0; begin < values.size(); begin += per_word) {
    std::uint64_t word = 0;
    std::memcpy(&word, &values[begin], std::min(per_word, values.size() - begin) * sizeof(T));
    sum += mixed(word ^ ++place * 0x9E3779B97F4A7C15);
  }
  return sum;
}

template <class T>
class BitHash : public testing::Test {};
TYPED_TEST_SUITE(BitHash, Elements, );

TYPED_TEST(BitHash, IsThePlainLoops) {
  using T = TypeParam;
  for (const Index count : counts) {
    const auto x = numbers<T>(count, 1);
    EXPECT_EQ(hash_of(x), plain_hash(x)) << count;
  }
}

TYPED_TEST(BitHash, ChangesWithEveryBit) {
  using T = TypeParam;
  const Index count = 4099;
  auto x = numbers<T>(count, 1);
  const std::uint64_t before = hash_of(x);
  for (const Index at : {0, 1, 2, 3, 4096, 4098}) {
    for (std::size_t bit = 0; bit < 8 * sizeof(T); ++bit) {
      auto* const byte = reinterpret_cast<unsigned char*>(&x[at]);
      byte[bit / 8] ^= 1U << bit % 8;
      EXPECT_NE(hash_of(x), before) << "bit " << bit << " of element " << at;
      byte[bit / 8] ^= 1U << bit % 8;
    }
  }
  EXPECT_EQ(hash_of(x), before);
}

TYPED_TEST(BitHash, ChangesWithPlacesAndSigns) {
  using T = TypeParam;
  std::vector<T> x(100, T(0));
  x[17] = T(1);
  const std::uint64_t before = hash_of(x);
  std::swap(x[17], x[18]);
  EXPECT_NE(hash_of(x), before);
  std::swap(x[17], x[18]);
  x[3] = T(-0.0F);
  EXPECT_NE(hash_of(x), before);
  x[3] = T(0);
  x.pop_back();
  EXPECT_NE(hash_of(x), hash_of(std::vector<T>(99, T(0))));
}

// The sum of two NaNs may be either NaN.
TYPED_TEST(BitHash, TakesAllNansForOne) {
  using T = TypeParam;
  auto x = numbers<T>(100, 1), y = x;
  x[50] = T(std::numeric_limits<float>::quiet_NaN());
  y[50] = T(-std::numeric_limits<float>::quiet_NaN());
  ASSERT_FALSE(tests::same_bits(x, y));
  EXPECT_EQ(hash_of(x), hash_of(y));
  y[50] = T(std::numeric_limits<float>::infinity());
  EXPECT_NE(hash_of(x), hash_of(y));
  x[50] = T(-std::numeric_limits<float>::infinity());
  EXPECT_NE(hash_of(x), hash_of(y));
}

TYPED_TEST(BitHash, DoesNotShowTheNumberOfThreads) {
  const auto x = numbers<TypeParam>(20011, 1);
  for (const auto& exec : tests::thread_counts()) EXPECT_EQ(hash_of(exec, x), plain_hash(x));
}

}  // namespace
}  // namespace kzero::kernels
