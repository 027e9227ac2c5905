// Shards of a checkpoint whose values are computed while they are written, so that weights of any
// size need a few MiB of memory.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/format/staging.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "convert/export.hpp"

namespace kzero::convert {

/// The memory that the shards of one rank share. Their values have addresses without memory, like
/// those of a device: they stand for the elements of a parameter and are never accessed.
class ComputedMemory {
 public:
  /// Throws Error(memory) if the system has no addresses for the elements of the largest parameter.
  explicit ComputedMemory(Index largest_elements);

  float* addresses() const { return static_cast<float*>(addresses_.get()); }
  std::span<float> slot(std::size_t number) { return slots_[number]; }

 private:
  std::shared_ptr<void> addresses_;
  std::array<std::vector<float>, checkpoint::Staging::slots> slots_;
};

/// All values of one parameter, as the master weights of a checkpoint.
class ComputedShard : public checkpoint::Staging {
 public:
  /// `memory` and `source` must outlive the object.
  ComputedShard(ComputedMemory& memory, const ExportSource& source,
                const checkpoint::Parameter& parameter)
      : memory_(memory), source_(source), parameter_(parameter) {}

  /// The object must outlive the shard. Its values may be read more than once.
  checkpoint::StateShard shard();

  std::span<float> slot(std::size_t number) override { return memory_.slot(number); }
  void bring(std::size_t number, const float* from, std::span<float> to) override;
  void send(std::size_t number, std::span<const float> from, float* to) override;
  void wait(std::size_t /*number*/) override {}

 private:
  ComputedMemory& memory_;
  const ExportSource& source_;
  const checkpoint::Parameter& parameter_;
};

}  // namespace kzero::convert
