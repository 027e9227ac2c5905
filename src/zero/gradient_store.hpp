// Where the model writes its gradients, and what becomes of them. Replicated (stages 0 and 1), each
// unit has a place of its own; partitioned (stages 2 and 3, the paper's P_g), a unit's gradient
// lies in passing memory until it is reduced, and a rank keeps its shard of the sum.
#pragma once

#include <optional>

#include "zero/flat_buffer.hpp"
#include "zero/reduction.hpp"
#include "zero/schedule.hpp"

namespace kzero::zero {

struct GradientOptions {
  Stage stage;
  bool adds_reduced = false;  // every micro-batch is reduced, and owned sums are added in fp32
  Index bucket = 0;           // bytes
  comm::Overlap overlap = comm::Overlap::no;
  Order order = Order::ranks;
};

/// Of the micro-batches of a step.
struct MicroBatch {
  bool first = true;
  bool last = true;
};

template <class T>
class GradientStore {
 public:
  /// Takes memory from gradients and buckets: `targets` elements for gradients in passing.
  GradientStore(memory::Arenas& arenas, const param::FlatLayout& layout,
                const GradientOptions& options, Index targets, Index rank);

  /// Units by number, as the model writes them; null where nothing may be written now.
  const std::vector<T*>& units() const { return units_; }

  /// Of all units: whole, or this rank's shards.
  const FlatBuffer<T>& held() const { return held_; }

  /// The reduced gradient of this rank's shard of unit u, rounded to T; after finish().
  T* owned(Index u) const { return held_.share(u, Placement::partitioned, rank_); }

  /// All that finish() leaves here: units in stage 0, else shards.
  T* result(Index u) const { return held_.share(u, options_.stage.optimizer, rank_); }

  /// Whether the model adds to what earlier micro-batches left in its units.
  bool adds_in_model(const MicroBatch& micro) const {
    return !options_.adds_reduced && !micro.first;
  }

  /// Before an operation: makes room for what it is the first to write.
  void before(const ScheduleStep& step, const tensor::Execution& exec);

  /// After it: ends the reduction under way and begins that of complete units. Collective.
  void after(const ScheduleStep& step, const MicroBatch& micro, const tensor::Execution& exec,
             comm::Communicator& comm);

  /// Ends all reductions. Collective.
  void finish(const tensor::Execution& exec, comm::Communicator& comm);

 private:
  OwnedSum<T> destination(Index u, const MicroBatch& micro) const;
  void end_reductions();

  const param::FlatLayout* layout_;
  GradientOptions options_;
  Index rank_;
  FlatBuffer<T> held_;
  T* passing_ = nullptr;
  FlatBuffer<float> sums_;  // of micro-batches; the held shards themselves where they are fp32
  Bucket bucket_;
  std::vector<T*> units_;
  std::optional<ReductionStream> stream_;  // none while measuring
  std::vector<Reduction<T>> under_way_;
  comm::Request last_gather_ = 0;
};

}  // namespace kzero::zero
