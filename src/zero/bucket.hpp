// The communication buffer of constant size (the paper's C_B, section 6.2).
#pragma once

#include <span>

#include "comm/backends.hpp"
#include "comm/communicator.hpp"
#include "memory/arenas.hpp"
#include "param/flat_layout.hpp"
#include "zero/sum_plan.hpp"

namespace kzero::zero {

class Bucket {
 public:
  /// Allocates at most `bytes` from the buckets category, but at least one element per rank and
  /// slot. Never allocates more than the largest unit needs. Allocates nothing for a single rank.
  /// With overlap, two slots serve units that do not fit: one is filled while the other is summed.
  /// Serves reductions of the plan `sums` and of those in `later`, which differ in the number of
  /// micro-batches.
  Bucket(memory::Arenas& arenas, Index bytes, Dtype dtype, const param::FlatLayout& layout,
         comm::Overlap overlap, const SumPlan& sums, std::span<const SumPlan> later = {});

  /// The number of elements of each rank's shard that a slot serves at a time.
  Index slice() const { return slice_; }
  Index slots() const { return slots_; }

  /// Gradients of other ranks [ranks * own, slice], for the own terms of each rank in a round.
  template <class T>
  T* gradients(Index slot) const {
    return static_cast<T*>(gradients_) + slot % slots_ * slice_ * terms_;
  }

  /// This node's sums for the ranks with this rank's place on their nodes, and those of the other
  /// nodes for this rank [nodes, slice]. Null if all plans have
  /// Route::terms.
  float* node_sums(Index slot) const { return sums_ + slot % slots_ * 2 * nodes_ * slice_; }
  float* arriving(Index slot) const { return node_sums(slot) + nodes_ * slice_; }

 private:
  Index terms_;
  Index nodes_ = 0;
  Index slice_ = 0;
  Index slots_ = 1;
  float* sums_ = nullptr;
  void* gradients_ = nullptr;
};

}  // namespace kzero::zero
