// The communication buffer of constant size (the paper's C_B, section 6.2) and the deterministic
// reduction that runs through it: an all-to-all of the bucket, then each owner adds the ranks'
// values in rank order in fp32 and rounds once. It sends what a ring reduce-scatter sends, and its
// bits depend on no library's algorithm.
#pragma once

#include "comm/communicator.hpp"
#include "memory/arenas.hpp"
#include "param/flat_layout.hpp"
#include "tensor/view.hpp"

namespace kzero::zero {

class Bucket {
 public:
  /// Takes at most `bytes` (at least one element a rank, and no more than the largest unit fills)
  /// from the buckets category; nothing for a single rank.
  Bucket(memory::Arenas& arenas, Index bytes, Dtype dtype, const param::FlatLayout& layout);

  /// Sums a unit's gradients over the group and leaves the sum on every rank. `unit`
  /// [layout.padded] lies on the device; dtype is the constructor's. Collective over the
  /// communicator's group.
  template <class T>
  void all_reduce(const tensor::Execution& exec, comm::Communicator& comm,
                  const param::UnitLayout& layout, T* unit) const;

 private:
  Index slice_ = 0;  // elements from each rank at a time
  void* data_ = nullptr;
};

/// Elements that one rank sends to reduce-scatter, or to all-gather, a buffer of `padded` elements.
constexpr Index exchanged_elements(Index padded, Index ranks) {
  return padded / ranks * (ranks - 1);
}

}  // namespace kzero::zero
