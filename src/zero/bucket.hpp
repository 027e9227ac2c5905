// The communication buffer of constant size (the paper's C_B, section 6.2).
#pragma once

#include "comm/backends.hpp"
#include "comm/communicator.hpp"
#include "memory/arenas.hpp"
#include "param/flat_layout.hpp"

namespace kzero::zero {

class Bucket {
 public:
  /// Allocates at most `bytes` from the buckets category, but at least one element per rank and
  /// slot. Never allocates more than the largest unit needs. Allocates nothing for a single rank.
  /// With overlap, two slots serve units that do not fit: one is filled while the other is summed.
  Bucket(memory::Arenas& arenas, Index bytes, Dtype dtype, const param::FlatLayout& layout,
         comm::Overlap overlap);

  /// The number of elements that a slot receives from each rank at a time.
  Index slice() const { return slice_; }
  Index slots() const { return slots_; }

  template <class T>
  T* slot(Index i) const {
    return static_cast<T*>(data_) + i % slots_ * slice_ * ranks_;
  }

 private:
  Index ranks_;
  Index slice_ = 0;
  Index slots_ = 1;
  void* data_ = nullptr;
};

/// Returns how many elements one rank sends to reduce-scatter, or to all-gather, a buffer of
/// `padded` elements.
constexpr Index collective_elements(Index padded, Index ranks) {
  return padded / ranks * (ranks - 1);
}

}  // namespace kzero::zero
