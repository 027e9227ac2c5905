// Gives tests access to the values of a device's state.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "checkpoint/format/state_blocks.hpp"

namespace kzero::tests {

/// Copies of shards and of their values in host memory.
class HostShards {
 public:
  explicit HostShards(const std::vector<checkpoint::StateShard>& shards) : shards_(shards) {
    for (checkpoint::StateShard& shard : shards_) {
      for (checkpoint::StateValues& array : shard.arrays) {
        std::vector<float>& copy = memory_.emplace_back(array.values.size());
        checkpoint::BlockReader blocks(shard.staging, std::span(&array, 1));
        while (const auto block = blocks.next())
          std::ranges::copy(block->arrays.front(), copy.begin() + block->begin);
        array.values = copy;
      }
      shard.staging = nullptr;
    }
  }
  HostShards(const HostShards&) = delete;
  HostShards& operator=(const HostShards&) = delete;

  auto begin() const { return shards_.begin(); }
  auto end() const { return shards_.end(); }

 private:
  std::deque<std::vector<float>> memory_;
  std::vector<checkpoint::StateShard> shards_;
};

}  // namespace kzero::tests
