#include "base/philox.hpp"

#include <gtest/gtest.h>

#include <array>

namespace kzero {

namespace {

using Words = std::array<std::uint32_t, 4>;

Words words(std::uint64_t key, std::uint64_t low, std::uint64_t high) {
  const Philox4 result = philox(key, low, high);
  return {result.word[0], result.word[1], result.word[2], result.word[3]};
}

// The known answers that the authors publish with Random123 (kat_vectors, philox4x32 with 10
// rounds). They list counter and key as 32-bit words. Here the first word is the low half of the
// first argument.
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(words(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words(~0ULL, ~0ULL, ~0ULL), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, EveryArgumentBitCounts) {
  const Words base = words(1, 2, 4);
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t flip = 1ULL << bit;
    EXPECT_NE(words(1 ^ flip, 2, 4), base);
    EXPECT_NE(words(1, 2 ^ flip, 4), base);
    EXPECT_NE(words(1, 2, 4 ^ flip), base);
  }
}

}  // namespace

}  // namespace kzero
