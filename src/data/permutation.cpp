#include "data/permutation.hpp"

#include "base/error.hpp"
#include "base/philox.hpp"

namespace kzero::data {

namespace {
// Four rounds give a pseudorandom permutation of a large set; small sets need more to mix well.
constexpr int rounds = 8;
constexpr std::uint64_t key_purpose =
    0x64617461;  // separates these draws from others of the same seed
}  // namespace

Permutation::Permutation(Index count, std::uint64_t seed, std::uint64_t epoch)
    : count_(static_cast<std::uint64_t>(count)) {
  KZERO_EXPECT(count >= 1);
  const Philox4 draw = philox(seed, epoch, key_purpose);
  key_ = draw.word[0] | std::uint64_t{draw.word[1]} << 32;
  while (count_ > std::uint64_t{1} << (2 * half_bits_)) ++half_bits_;
}

std::uint64_t Permutation::encrypt(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t next = left ^ (philox(key_, right, round).word[0] & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

Index Permutation::operator()(Index position) const {
  auto value = encrypt(static_cast<std::uint64_t>(position));
  while (value >= count_) value = encrypt(value);
  return static_cast<Index>(value);
}

}  // namespace kzero::data
