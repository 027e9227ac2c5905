#include "base/checksum.hpp"

#include <gtest/gtest.h>

#include <array>
#include <span>

namespace kzero {
namespace {

/// The key 00 01 ... 0f of the published vectors.
constexpr SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};

/// The hash of the bytes 00 01 ... of that many.
std::uint64_t hash_of_first(std::size_t count) {
  std::array<std::byte, 64> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  return siphash(key, std::span(bytes).first(count));
}

TEST(SipHash, IsThatOfThePaper) { EXPECT_EQ(hash_of_first(15), 0xa129ca6149be45e5); }  // appendix A

/// The authors' vectors (vectors.h of their reference implementation), and openssl's SIPHASH.
TEST(SipHash, IsThatOfTheReferenceForEveryLengthOfTheLastWord) {
  constexpr std::array<std::uint64_t, 9> expected{
      0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a,
      0x85676696d7fb7e2d, 0xcf2794e0277187b7, 0x18765564cd99a68d,
      0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462};
  for (std::size_t count = 0; count < expected.size(); ++count)
    EXPECT_EQ(hash_of_first(count), expected[count]) << count;
  EXPECT_EQ(hash_of_first(63), 0x958a324ceb064572);
}

}  // namespace
}  // namespace kzero
