// The shards that a rank wants from a checkpoint, offered to the verification of its files: a
// wanted shard that is stored contiguously is filled while its checksum is taken, and read once.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/state_shard.hpp"

namespace kzero::checkpoint {

/// A wanted shard that has its values, and their hash_of().
struct Filled {
  StateShard shard;
  std::uint64_t hash = 0;
};

class Targets {
 public:
  Targets() = default;
  /// Makes the targets of a checkpoint with this manifest. `wanted` must outlive the object.
  Targets(std::span<const StateShard> wanted, const Manifest& manifest);

  /// The wanted shard of the stored one's elements in their order, for the caller to fill and
  /// put(); each is given out once. None where it has to be put together from several, or does
  /// not want all elements of all arrays.
  const StateShard* take(const StoredShard& stored);
  void put(const Filled& filled) { filled_.push_back(filled); }

  const std::vector<Filled>& filled() const { return filled_; }

 private:
  struct Target {
    std::vector<Run> runs;
    const StateShard* shard = nullptr;
  };

  std::unordered_multimap<Index, Target> by_parameter_;
  std::vector<Filled> filled_;
};

}  // namespace kzero::checkpoint
