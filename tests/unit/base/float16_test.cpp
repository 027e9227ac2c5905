#include "base/float16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace kzero {

namespace {

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// Floats of every exponent and sign. A stride of 4099, a prime, gives about a million.
template <class F>
void for_each_sample(const F& f) {
  for (std::uint64_t bits = 0; bits <= 0xFFFFFFFFU; bits += 4099) {
    f(from_bits(static_cast<std::uint32_t>(bits)));
  }
}

/// The critical cases: midpoints between neighbours of a type, and the floats next to them.
template <class T, class F>
void for_each_midpoint(std::uint16_t infinity, const F& f) {
  for (int bits = 0; bits + 1 < infinity; ++bits) {
    T low, high;
    low.bits = static_cast<std::uint16_t>(bits);
    high.bits = static_cast<std::uint16_t>(bits + 1);
    const auto middle = static_cast<float>(
        0.5 * (static_cast<double>(static_cast<float>(low)) + static_cast<float>(high)));
    for (const float x : {std::nextafter(middle, 0.0F), middle, std::nextafter(middle, INFINITY)}) {
      f(x);
      f(-x);
    }
  }
}

/// The nearest neighbour, or the even one on a tie. Beyond the largest value, the next step is
/// infinity.
std::uint16_t nearest_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto low = static_cast<std::uint16_t>(bits >> 16);
  if (std::isinf(value) || (bits & 0xFFFFU) == 0) return low;
  const auto high = static_cast<std::uint16_t>(low + 1);
  const double below = std::abs(static_cast<double>(detail::bf16_value(low)));
  const double above =
      (high & 0x7FFF) == 0x7F80 ? 0x1p128 : std::abs(static_cast<double>(detail::bf16_value(high)));
  const double down = std::abs(static_cast<double>(value)) - below;
  const double up = above - std::abs(static_cast<double>(value));
  if (down == up) return low % 2 == 0 ? low : high;
  return down < up ? low : high;
}

TEST(Bf16, AllBitPatternsComeBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float value = detail::bf16_value(static_cast<std::uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_EQ(bf16(value).bits, bits | 0x40U) << "a NaN keeps its payload and turns quiet";
    } else {
      EXPECT_EQ(bf16(value).bits, bits);
    }
  }
}

TEST(Bf16, RoundsToNearestTiesToEven) {
  int wrong = 0;
  const auto check = [&](float x) { wrong += !std::isnan(x) && bf16(x).bits != nearest_bf16(x); };
  for_each_sample(check);
  for_each_midpoint<bf16>(0x7F80, check);
  EXPECT_EQ(wrong, 0);
}

TEST(Bf16, LargeValuesOverflowToInfinity) {
  constexpr float half_past_largest = 0x1.FFp127F;  // between the largest bf16 and 2^128
  EXPECT_EQ(bf16(half_past_largest).bits, 0x7F80);
  EXPECT_EQ(bf16(std::nextafter(half_past_largest, 0.0F)).bits, 0x7F7F);
  EXPECT_EQ(bf16(-std::numeric_limits<float>::max()).bits, 0xFF80);
}

TEST(Fp16, AllBitPatternsComeBack) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float value = detail::fp16_value(static_cast<std::uint16_t>(bits));
    if ((bits & 0x7FFFU) > 0x7C00U) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(fp16(value).bits, (bits & 0x8000U) | 0x7E00U) << "a NaN stays one, quiet";
    } else {
      EXPECT_EQ(fp16(value).bits, bits);
    }
  }
}

TEST(Fp16, LargeAndSmallValuesRoundToTheEnds) {
  EXPECT_EQ(fp16(65520.0F).bits, 0x7C00);  // tie after 65504: the even neighbour is infinity
  EXPECT_EQ(fp16(std::nextafter(65520.0F, 0.0F)).bits, 0x7BFF);
  EXPECT_EQ(fp16(-1e30F).bits, 0xFC00);
  EXPECT_EQ(fp16(0x1p-24F).bits, 0x0001);
  EXPECT_EQ(fp16(0x1p-25F).bits, 0x0000);  // half the smallest: ties to even
  EXPECT_EQ(fp16(std::nextafter(0x1p-25F, 1.0F)).bits, 0x0001);
  EXPECT_EQ(fp16(-0.0F).bits, 0x8000);
  EXPECT_EQ(fp16(std::nextafter(0x1p-14F, 0.0F)).bits, 0x0400);  // rounds up to the smallest normal
}

#ifdef __FLT16_MAX__
TEST(Fp16, AgreesWithTheCompiler) {
  using Native = _Float16;
  int wrong = 0;
  const auto check = [&](float x) {
    wrong += !std::isnan(x) && fp16(x).bits != std::bit_cast<std::uint16_t>(static_cast<Native>(x));
  };
  for_each_sample(check);
  for_each_midpoint<fp16>(0x7C00, check);
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float expected = static_cast<float>(std::bit_cast<Native>(half));
    const float actual = detail::fp16_value(half);
    wrong += std::isnan(expected)
                 ? !std::isnan(actual)
                 : std::bit_cast<std::uint32_t>(actual) != std::bit_cast<std::uint32_t>(expected);
  }
  EXPECT_EQ(wrong, 0);
}
#endif

TEST(Dtypes, StorageTypesAndDtypesMatch) {
  for (const Dtype dtype : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    with_type(dtype, [&](auto value) {
      EXPECT_EQ(dtype_of<decltype(value)>, dtype);
      EXPECT_EQ(static_cast<Index>(sizeof value), bytes_of(dtype));
    });
  }
}

}  // namespace

}  // namespace kzero
