#include "checkpoint/parameter_hash.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kzero::checkpoint {

namespace {

// Odd, so that multiplying loses nothing: the constants of SplitMix64 (Steele, Lea, Flood 2014).
constexpr std::uint64_t step_of_place = 0x9E3779B97F4A7C15;
constexpr std::uint64_t first_mixer = 0xBF58476D1CE4E5B9;
constexpr std::uint64_t second_mixer = 0x94D049BB133111EB;

std::uint64_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }

/// Every step can be undone, so for one place and two of the values the third never mixes to the
/// same as another.
std::uint64_t mix(std::uint64_t place, float master, float first_moment, float second_moment) {
  std::uint64_t x = (place ^ bits_of(master) ^ (bits_of(first_moment) << 32)) * first_mixer;
  x = (x ^ (x >> 32) ^ bits_of(second_moment)) * second_mixer;
  return x ^ (x >> 29);
}

/// Of `count` elements of the shard's arrays, from `first` on, that lie one behind the other in the
/// parameter from `place` on.
std::uint64_t sum_of_mixes(const StateShard& shard, Index first, Index count, std::uint64_t place) {
  const float* master = shard.master.data() + first;
  const float* first_moment = shard.first_moment.data() + first;
  const float* second_moment = shard.second_moment.data() + first;
  const auto elements = static_cast<std::uint64_t>(count);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < elements; ++i) {
    sum += mix(place + i * step_of_place, master[i], first_moment[i], second_moment[i]);
  }
  return sum;
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

void StateShardHash::add(Index count) {
  while (count > 0) {
    const Range& range = shard_.ranges[range_];
    const Index now = std::min(count, range.count - in_range_);
    sum_ +=
        sum_of_mixes(shard_, added_, now,
                     key_ + static_cast<std::uint64_t>(range.begin + in_range_) * step_of_place);
    count -= now;
    added_ += now;
    in_range_ += now;
    if (in_range_ < range.count) continue;
    ++range_;
    in_range_ = 0;
  }
}

std::uint64_t hash_of(const StateShard& shard, Index position) {
  StateShardHash hash(shard, position);
  hash.add(elements_of(shard.ranges));
  return hash.value();
}

std::uint64_t sum_of_hashes(const grid::Group& world, std::uint64_t mine) {
  std::uint64_t sum = 0;
  for (const std::string& text :
       world.gather(std::string(reinterpret_cast<const char*>(&mine), sizeof mine))) {
    std::uint64_t hash = 0;
    std::memcpy(&hash, text.data(), sizeof hash);
    sum += hash;
  }
  return sum;
}

}  // namespace kzero::checkpoint
