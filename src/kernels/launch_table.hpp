// A table of arrays that one launch processes block by block. It is an argument of the launch, for
// which CUDA has 4 KiB, so it is on the device without a copy.
#pragma once

#include <limits>

#include "base/error.hpp"
#include "kernels/row.hpp"

namespace kzero::kernels {

/// At most `max_parts` parts, each with its own number of blocks. `max_parts` is a power of two.
template <class Part, int max_parts>
class LaunchTable {
 public:
  LaunchTable() { clear(); }

  void clear() {
    count_ = 0;
    for (int& end : ends_) end = std::numeric_limits<int>::max();
  }

  bool is_full() const { return count_ == max_parts; }

  /// Appends a part. The table must not be full.
  void add(const Part& part, Index blocks) {
    KZERO_EXPECT(!is_full());
    const Index end = this->blocks() + blocks;
    KZERO_EXPECT(end < std::numeric_limits<int>::max());
    parts_[count_] = part;
    ends_[count_++] = static_cast<int>(end);
  }

  /// The blocks of all parts.
  Index blocks() const { return count_ == 0 ? 0 : ends_[count_ - 1]; }

  /// The number of the part that has block `number`.
  KOKKOS_INLINE_FUNCTION int part_of(Index number) const {
    int first = 0;
    for (int step = max_parts / 2; step > 0; step /= 2) {
      if (number >= ends_[first + step - 1]) first += step;
    }
    return first;
  }

  KOKKOS_INLINE_FUNCTION const Part& part(int number) const { return parts_[number]; }

  /// The blocks of the parts before part `number`.
  KOKKOS_INLINE_FUNCTION Index first_block(int number) const {
    return number == 0 ? 0 : ends_[number - 1];
  }

 private:
  static_assert((max_parts & (max_parts - 1)) == 0);

  Part parts_[max_parts] = {};
  int ends_[max_parts];  // the last block of each part and of those before it, plus one
  int count_ = 0;
};

/// Collects parts and processes them with as few launches as possible. A part has
///   Index blocks() const                             its blocks in the table
///   static void launch(const Where&, const LaunchTable<Part, most>&)
/// Where is Execution or HostCores, for arrays in the memory of the device or the host.
template <class Part, int max_parts, class Where>
class LaunchBatch {
 public:
  explicit LaunchBatch(const Where& where) : where_(where) {}

  void add(const Part& part) {
    if (table_.is_full()) run();
    table_.add(part, part.blocks());
  }

  /// Processes the parts that were added since the last call.
  void run() {
    if (table_.blocks() > 0) Part::launch(where_, table_);
    table_.clear();
  }

 private:
  const Where& where_;
  LaunchTable<Part, max_parts> table_;
};

}  // namespace kzero::kernels
