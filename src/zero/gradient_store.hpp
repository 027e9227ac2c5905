// The gradients of a run: where the model writes them and how they are reduced. Replicated
// gradients (stages 0 and 1) have one buffer per unit. With partitioned gradients (stages 2 and 3,
// the paper's P_g), a unit's gradient is in an unsharded buffer until it is reduced, and a rank
// keeps its shard of the sum. A rank whose part of a micro-batch has several chunks writes a
// gradient for each, all in such buffers.
#pragma once

#include <optional>

#include "comm/backends.hpp"
#include "zero/flat_buffer.hpp"
#include "zero/reduction.hpp"
#include "zero/schedule.hpp"

namespace kzero::zero {

struct GradientOptions {
  Stage stage;
  bool adds_reduced = false;  // every round is reduced; otherwise the model adds up the rounds
  SumPlan sums{};
  std::vector<SumPlan> later{};  // those of other phases, for which the memory suffices, too
  Index bucket = 0;              // in bytes
  comm::Overlap overlap = comm::Overlap::no;
  Order order = Order::ranks;
};

/// A round of a step, in which every data-parallel rank computes one micro-batch. In the last
/// round, some ranks may have none.
struct Round {
  Index number = 0;
  bool last = true;

  bool first() const { return number == 0; }
};

template <class T>
class GradientStore {
 public:
  /// Allocates from the gradients and buckets categories, including `targets` elements for
  /// unsharded gradient buffers of each chunk.
  GradientStore(memory::Arenas& arenas, const param::FlatLayout& layout,
                const GradientOptions& options, Index targets, Index rank);

  /// The units that the model writes: all units of the first chunk, by number, then of the next.
  /// Null while a unit must not be written.
  const std::vector<T*>& units() const { return units_; }

  /// The gradients of all units: full, or this rank's shards.
  const FlatBuffer<T>& held() const { return held_; }

  /// The reduced gradient of this rank's shard of unit u, rounded to T. Valid after finish().
  T* owned(Index u) const { return held_.share(u, Placement::partitioned, rank_); }

  /// The reduced gradient of unit u that finish() leaves on this rank: the full unit in stage 0,
  /// otherwise the shard.
  T* result(Index u) const { return held_.share(u, options_.stage.optimizer, rank_); }

  /// Reduces as `sums` says from the next step on: one of the plans in the options.
  void follow(const SumPlan& sums, bool adds_reduced);

  /// Returns whether the model adds to the gradients of earlier micro-batches.
  bool adds_in_model(const Round& round) const { return !options_.adds_reduced && !round.first(); }

  /// Prepares buffers for the gradients that an operation is the first to write.
  void before(const ScheduleStep& step, const tensor::Execution& exec);

  /// Finishes the reduction in flight and starts to reduce the units that the operation completed.
  /// Collective.
  void after(const ScheduleStep& step, const Round& round, const tensor::Execution& exec,
             comm::Communicator& comm);

  /// Replaces after() for gradients that are not needed: drops the units that the operation
  /// completed. No reduction may be in flight. Not collective.
  void drop(const ScheduleStep& step);

  /// Finishes all reductions. Collective.
  void finish(const tensor::Execution& exec, comm::Communicator& comm);

 private:
  bool has_chunks() const { return options_.sums.own() > 1; }
  bool stays() const { return options_.stage.gradients == Placement::replicated && !has_chunks(); }
  void set(Index u, T* first);
  void take_open_sums(memory::Arenas& arenas);
  UnitGradients<T> terms_of(Index u) const;
  UnitSums<T> sums_of(Index u) const;
  void end_reductions();

  const param::FlatLayout* layout_;
  GradientOptions options_;
  Index rank_;
  FlatBuffer<T> held_;
  Index targets_;
  T* passing_ = nullptr;        // [chunks, targets]
  FlatBuffer<float> oldest_;    // an owner's first open sums; held_ if it has fp32 shards
  float* others_ = nullptr;     // its other open sums
  float* node_open_ = nullptr;  // a node's open sums
  Bucket bucket_;
  std::vector<T*> units_;
  std::optional<ReductionStream> stream_;  // empty while measuring
  std::vector<Reduction<T>> under_way_;
  comm::Request last_gather_ = 0;
};

}  // namespace kzero::zero
