// The shards that a rank wants from a checkpoint, for use while its files are verified. A wanted
// shard that is stored contiguously is filled while its checksum is computed, and so read only
// once.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/state_shard.hpp"

namespace kzero::checkpoint {

/// A wanted shard with its values, and their hash_of().
struct Filled {
  StateShard shard;
  std::uint64_t hash = 0;
};

class WantedShards {
 public:
  WantedShards() = default;
  /// Makes the targets for a checkpoint with this manifest. `wanted` must outlive the object.
  WantedShards(std::span<const StateShard> wanted, const Manifest& manifest);

  /// Returns the wanted shard with the stored one's elements in their order, for the caller to fill
  /// and put(). Each is returned once. Null if the wanted shard must be assembled from several, or
  /// does not want all elements of all arrays.
  const StateShard* take(const StoredShard& stored);
  void put(const Filled& filled) { filled_.push_back(filled); }

  const std::vector<Filled>& filled() const { return filled_; }

 private:
  struct Wanted {
    std::vector<Run> runs;
    const StateShard* shard = nullptr;
  };

  std::unordered_multimap<Index, Wanted> by_parameter_;
  std::vector<Filled> filled_;
};

}  // namespace kzero::checkpoint
