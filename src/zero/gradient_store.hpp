// The gradients of a run: where the model writes them and how they are reduced. Replicated (stages
// 0 and 1), each unit has a buffer of its own; partitioned (stages 2 and 3, the paper's P_g), a
// unit's gradient lies in an unsharded gradient buffer until it is reduced, and a rank keeps its
// shard of the sum.
#pragma once

#include <optional>

#include "comm/backends.hpp"
#include "zero/flat_buffer.hpp"
#include "zero/reduction.hpp"
#include "zero/schedule.hpp"

namespace kzero::zero {

struct GradientOptions {
  Stage stage;
  bool adds_reduced = false;  // every round is reduced, onto the owned fp32 sums of those before
  Index bucket = 0;           // bytes
  comm::Overlap overlap = comm::Overlap::no;
  Order order = Order::ranks;
};

/// A round of a step: every data-parallel rank computes a micro-batch, in the last round perhaps
/// only the first ones.
struct Round {
  bool first = true;
  bool last = true;
  int ranks = 1;  // that have a micro-batch
};

template <class T>
class GradientStore {
 public:
  /// Takes memory from gradients and buckets, with `targets` elements for unsharded gradient
  /// buffers.
  GradientStore(memory::Arenas& arenas, const param::FlatLayout& layout,
                const GradientOptions& options, Index targets, Index rank);

  /// The units by number, as the model writes them; null where nothing may be written now.
  const std::vector<T*>& units() const { return units_; }

  /// The gradients of all units: full, or this rank's shards.
  const FlatBuffer<T>& held() const { return held_; }

  /// The reduced gradient of this rank's shard of unit u, rounded to T; valid after finish().
  T* owned(Index u) const { return held_.share(u, Placement::partitioned, rank_); }

  /// All reduced gradients that finish() leaves here: full units in stage 0, shards otherwise.
  T* result(Index u) const { return held_.share(u, options_.stage.optimizer, rank_); }

  /// Returns whether the model adds to the gradients that earlier micro-batches left in its units.
  bool adds_in_model(const Round& round) const { return !options_.adds_reduced && !round.first; }

  /// Prepares an operation: makes room for the gradients that it is the first to write.
  void before(const ScheduleStep& step, const tensor::Execution& exec);

  /// Completes an operation: finishes the reduction in flight and begins that of complete units.
  /// Collective.
  void after(const ScheduleStep& step, const Round& round, const tensor::Execution& exec,
             comm::Communicator& comm);

  /// Completes an operation of a computation whose gradients are not wanted: complete units are
  /// dropped. Only while no reduction is in flight. Not collective.
  void drop(const ScheduleStep& step);

  /// Finishes all reductions. Collective.
  void finish(const tensor::Execution& exec, comm::Communicator& comm);

 private:
  OwnedSum<T> destination(Index u, const Round& round) const;
  void end_reductions();

  const param::FlatLayout* layout_;
  GradientOptions options_;
  Index rank_;
  FlatBuffer<T> held_;
  T* passing_ = nullptr;
  FlatBuffer<float> sums_;  // of rounds; the local shards themselves if they are fp32
  Bucket bucket_;
  std::vector<T*> units_;
  std::optional<ReductionStream> stream_;  // none while measuring
  std::vector<Reduction<T>> under_way_;
  comm::Request last_gather_ = 0;
};

}  // namespace kzero::zero
