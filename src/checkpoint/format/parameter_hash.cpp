#include "checkpoint/format/parameter_hash.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace kzero::checkpoint {

namespace {

// Odd constants, so that multiplication is invertible. They are those of SplitMix64 (Steele, Lea,
// Flood 2014).
constexpr std::uint64_t step_of_place = 0x9E3779B97F4A7C15;
constexpr std::uint64_t first_mixer = 0xBF58476D1CE4E5B9;
constexpr std::uint64_t second_mixer = 0x94D049BB133111EB;

std::uint64_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

using Arrays = std::array<const float*, param::max_state_arrays>;  // null after the last

/// The bits of element i in two neighbouring arrays of `count`.
template <std::size_t count, std::size_t first>
std::uint64_t word_of(const Arrays& arrays, std::uint64_t i) {
  std::uint64_t word = 0;
  if constexpr (first < count) word |= bits_of(arrays[first][i]);
  if constexpr (first + 1 < count) word |= bits_of(arrays[first + 1][i]) << 32;
  return word;
}

/// Every step is invertible. If the place and all values except one are fixed, different values of
/// that one therefore give different mixes.
template <std::size_t count>
std::uint64_t mix(std::uint64_t place, const Arrays& arrays, std::uint64_t i) {
  std::uint64_t x = (place ^ word_of<count, 0>(arrays, i)) * first_mixer;
  x = (x ^ (x >> 32) ^ word_of<count, 2>(arrays, i)) * second_mixer;
  if constexpr (count > 4) x = (x ^ (x >> 30) ^ word_of<count, 4>(arrays, i)) * first_mixer;
  return x ^ (x >> 29);
}

template <std::size_t count>
std::uint64_t sum_of_mixes(const Arrays& arrays, std::uint64_t elements, std::uint64_t place) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < elements; ++i) {
    sum += mix<count>(place + i * step_of_place, arrays, i);
  }
  return sum;
}

/// Hashes `count` elements of the block's arrays from its element `first` on. They are contiguous
/// in the parameter from `place` on.
std::uint64_t sum_of_mixes(const Block& block, Index first, Index count, std::uint64_t place) {
  Arrays arrays{};
  std::size_t present = 0;
  for (const std::span<float> values : block.arrays) {
    if (!values.empty()) arrays[present++] = values.data() + first;
  }
  const auto elements = static_cast<std::uint64_t>(count);
  switch (present) {
    case 1:
      return sum_of_mixes<1>(arrays, elements, place);
    case 2:
      return sum_of_mixes<2>(arrays, elements, place);
    case 3:
      return sum_of_mixes<3>(arrays, elements, place);
    case 4:
      return sum_of_mixes<4>(arrays, elements, place);
    default:
      return sum_of_mixes<5>(arrays, elements, place);
  }
}

}  // namespace

Positions positions_of(const std::vector<Parameter>& parameters) {
  Positions positions;
  for (const Parameter& p : parameters) {
    positions.emplace(p.name, static_cast<Index>(positions.size()));
  }
  return positions;
}

StateShardHash::StateShardHash(const StateShard& shard, Index position)
    : shard_(shard), key_(static_cast<std::uint64_t>(position + 1) * second_mixer) {}

void StateShardHash::add(const Block& block) {
  for (Index added = 0; added < block.count;) {
    const Range& range = shard_.ranges[range_];
    const Index now = std::min(block.count - added, range.count - in_range_);
    sum_ +=
        sum_of_mixes(block, added, now,
                     key_ + static_cast<std::uint64_t>(range.begin + in_range_) * step_of_place);
    added += now;
    in_range_ += now;
    if (in_range_ < range.count) continue;
    ++range_;
    in_range_ = 0;
  }
}

std::uint64_t hash_of(const StateShard& shard, Index position) {
  StateShardHash hash(shard, position);
  for (BlockReader blocks(shard.staging, shard.arrays); const auto block = blocks.next();)
    hash.add(*block);
  return hash.value();
}

}  // namespace kzero::checkpoint
