// One number for all state arrays of a checkpoint, on any grid. It shows that the values loaded on
// another number of ranks are the saved ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/state_blocks.hpp"

namespace kzero::checkpoint {

/// The position of each parameter in the manifest's list.
using Positions = std::unordered_map<std::string, Index>;
Positions positions_of(const std::vector<Parameter>& parameters);

/// The sum modulo 2^64, over a shard's elements, of a mix of parameter, place and the element's
/// bits in each state array, in the order of the shard's arrays. Sums over shards that hold each
/// element once are the same for every split. A change of one element always changes the sum. The
/// elements are added in order, as they become known.
class StateShardHash {
 public:
  /// All arrays that extend to the parameter, at most param::max_state_arrays, must have room.
  /// `shard` must outlive the object. `position` is the parameter's.
  StateShardHash(const StateShard& shard, Index position);

  /// Adds the next elements of all arrays.
  void add(const Block& block);
  std::uint64_t value() const { return sum_; }

 private:
  const StateShard& shard_;
  std::uint64_t key_;
  std::size_t range_ = 0;  // the current range
  Index in_range_ = 0;     // its elements that were added
  std::uint64_t sum_ = 0;
};

/// Returns the hash of a full shard.
std::uint64_t hash_of(const StateShard& shard, Index position);

}  // namespace kzero::checkpoint
