// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash of short messages. Nobody can compute it
// without the key, or learn the key from hashes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kzero {

/// 128 random bits. The first word holds bytes 0 to 7 of the published key, in little endian.
using SipKey = std::array<std::uint64_t, 2>;

std::uint64_t siphash(const SipKey& key, std::span<const std::byte> bytes);

}  // namespace kzero
