// The values of state arrays in host memory, block by block: where they are, or through a staging
// of constant size (staging.hpp).
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>

#include "checkpoint/format/staging.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "param/state_array.hpp"

namespace kzero::checkpoint {

/// Elements [begin, begin + count) of several arrays, in their order; an array that has no values
/// is empty here.
struct Block {
  Index begin = 0;
  Index count = 0;
  std::array<std::span<float>, param::most_state_arrays> arrays{};
};

/// The largest block, if nothing else limits it.
inline constexpr Index no_limit = std::numeric_limits<Index>::max();

/// Returns the elements of a block of so many arrays: at most `most`, and what a slot of the
/// staging has room for. Throws Error(other) if that is nothing.
Index block_elements(Staging* staging, std::size_t arrays, Index most);

/// What readers and writers of blocks share: arrays of one length, or none, cut into blocks.
class Blocks {
 protected:
  /// `staging` is null where the host touches the values. `arrays` must outlive the object.
  Blocks(Staging* staging, std::span<const StateValues> arrays, Index most);

  std::size_t slot_of(Index begin) const;
  Block at(Index begin) const;

  Staging* staging_;
  std::span<const StateValues> arrays_;
  Index elements_ = 0;  // of an array
  Index step_;          // of a block
  Index next_ = 0;      // where the next block begins
};

/// Brings values to the host; the next block is on its way while the caller has one.
class BlockReader : Blocks {
 public:
  /// The arrays' values must not change before the last block was returned.
  BlockReader(Staging* staging, std::span<const StateValues> arrays, Index most = no_limit);

  /// Returns the next block, to be read, until the next call; none behind the last.
  std::optional<Block> next();

 private:
  void bring(Index begin);
};

/// Takes values from the host; one block is on its way while the caller fills the next.
class BlockWriter : Blocks {
 public:
  BlockWriter(Staging* staging, std::span<const StateValues> arrays, Index most = no_limit);

  /// Returns the next block, to be filled completely before the next call; none behind the last:
  /// then all values are in their place.
  std::optional<Block> next();

 private:
  void send(Index begin);
};

/// Sets all values of an array to zero.
void clear(Staging* staging, const StateValues& array);

}  // namespace kzero::checkpoint
