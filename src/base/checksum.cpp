#include "base/checksum.hpp"

#include <fmt/format.h>

#include <bit>

#ifndef __clang__  // gcc 12 sees an uninitialized value in its own intrinsics, which xxHash inlines
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <xxhash.h>

namespace kzero {

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Digest::Digest() : state_(XXH3_createState()) {
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

void Digest::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

std::uint64_t Digest::value() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
}

void Digest::Free::operator()(void* state) const {
  XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

std::string format_checksum(std::uint64_t digest) { return fmt::format("{:016x}", digest); }

namespace {

constexpr std::size_t word_bytes = 8;

/// The four words of the state.
struct State {
  std::uint64_t v0, v1, v2, v3;

  void mix(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  }

  void absorb(std::uint64_t word) {
    v3 ^= word;
    mix(2);
    v0 ^= word;
  }
};

/// At most eight bytes as a number in little endian.
std::uint64_t word_of(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    word |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  return word;
}

}  // namespace

std::uint64_t siphash(const SipKey& key, std::span<const std::byte> bytes) {
  // The constants are the paper's, "somepseudorandomlygeneratedbytes" in ASCII.
  State state{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
              key[1] ^ 0x7465646279746573};
  const std::uint64_t length = static_cast<std::uint64_t>(bytes.size()) << 56;
  for (; bytes.size() >= word_bytes; bytes = bytes.subspan(word_bytes))
    state.absorb(word_of(bytes.first(word_bytes)));
  state.absorb(word_of(bytes) | length);
  state.v2 ^= 0xff;
  state.mix(4);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace kzero
