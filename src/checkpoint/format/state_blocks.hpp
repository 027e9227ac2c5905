// The values of state arrays in host memory, block by block: in place, or through a staging of
// constant size (staging.hpp).
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>

#include "checkpoint/format/staging.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "param/state_array.hpp"

namespace kzero::checkpoint {

/// Elements [begin, begin + count) of several arrays, in their order. An array without values is
/// empty here.
struct Block {
  Index begin = 0;
  Index count = 0;
  std::array<std::span<float>, param::max_state_arrays> arrays{};
};

/// The block limit if nothing else limits it.
inline constexpr Index no_limit = std::numeric_limits<Index>::max();

/// Returns the number of elements per block for so many arrays: at most `max_elements`, and at most
/// what fits into a slot of the staging. Throws Error(other) if that is none.
Index block_elements(Staging* staging, std::size_t arrays, Index max_elements);

/// The base of readers and writers of blocks: arrays of equal length, or empty, divided into
/// blocks.
class Blocks {
 protected:
  /// `staging` is null if the host can access the values. `arrays` must outlive the object.
  Blocks(Staging* staging, std::span<const StateValues> arrays, Index max_elements);

  std::size_t slot_of(Index begin) const;
  Block at(Index begin) const;

  Staging* staging_;
  std::span<const StateValues> arrays_;
  Index elements_ = 0;  // of an array
  Index step_;          // of a block
  Index next_ = 0;      // where the next block begins
};

/// Copies values to the host. The next block is copied while the caller uses the current one.
class BlockReader : Blocks {
 public:
  /// The arrays' values must not change until the last block is returned.
  BlockReader(Staging* staging, std::span<const StateValues> arrays, Index max_elements = no_limit);

  /// Returns the next block, which is valid until the next call; nullopt after the last.
  std::optional<Block> next();

 private:
  void bring(Index begin);
};

/// Copies values from the host. One block is copied while the caller fills the next.
class BlockWriter : Blocks {
 public:
  BlockWriter(Staging* staging, std::span<const StateValues> arrays, Index max_elements = no_limit);

  /// Returns the next block, which the caller must fill completely before the next call. Returns
  /// nullopt after the last; then all values are in their place.
  std::optional<Block> next();

 private:
  void send(Index begin);
};

/// Sets all values of an array to zero.
void clear(Staging* staging, const StateValues& array);

}  // namespace kzero::checkpoint
