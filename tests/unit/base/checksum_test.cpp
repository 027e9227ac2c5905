#include "base/checksum.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace kzero {

namespace {

std::vector<std::byte> pattern(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  return bytes;
}

TEST(Checksum, OfNothingIsThePublishedOne) {
  EXPECT_EQ(format_checksum(checksum({})), "2d06800538d394c2");  // XXH3_64bits of no bytes, seed 0
}

TEST(Checksum, NoticesOneFlippedBit) {
  auto bytes = pattern(1000);
  const auto before = checksum(bytes);
  bytes[617] ^= std::byte{4};
  EXPECT_NE(checksum(bytes), before);
}

TEST(Checksum, OfBytesInChunksIsThatOfAllAtOnce) {
  const auto bytes = pattern(9000001);
  Digest digest;
  const std::span<const std::byte> all(bytes);
  digest.update(all.first(1));
  digest.update(all.subspan(1, 4194303));
  digest.update(all.subspan(4194304));
  EXPECT_EQ(digest.value(), checksum(bytes));
}

}  // namespace

}  // namespace kzero
