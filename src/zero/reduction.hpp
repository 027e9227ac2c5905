// The deterministic reduce-scatter of one unit's gradients, in the order of a SumPlan. Owners, and
// on the way to them nodes, add the gradients that they receive through the bucket. A reduction of
// a round sends as much as a ring. Its bits do not depend on a library's algorithm. Order::library
// selects the library's reduce-scatter instead.
#pragma once

#include "comm/gather.hpp"
#include "deck/config.hpp"
#include "kernels/pairwise_sum.hpp"
#include "runtime/event.hpp"
#include "tensor/view.hpp"
#include "zero/bucket.hpp"
#include "zero/sum_plan.hpp"

namespace kzero::zero {

/// This rank's gradients of a unit, which are its terms of the sum: one of each chunk of its part
/// of a micro-batch.
template <class T>
struct UnitGradients {
  T* first = nullptr;  // [padded]
  Index stride = 0;    // between chunks
  T* whole = nullptr;  // [padded], where Result::all_reduced gathers the sum
};

/// Where the sums of a unit's gradients are: the result, and what stays open between rounds.
template <class T>
struct UnitSums {
  T* out = nullptr;         // this rank's shard of the complete sum, rounded once
  kernels::OpenSums owner;  // open sums of this rank's shard
  /// Open sums of the shards of the ranks with this rank's place on their nodes [nodes * shard].
  kernels::OpenSums node;
};

/// Whether the sum stays with its owner or is gathered to every rank.
enum class Result { reduce_scattered, all_reduced };

/// The order of summation: by micro-batch, or the order of the collectives library.
using Order = deck::ReductionOrder;

/// The stream for collectives and sums, which run concurrently with the model's kernels.
struct ReductionStream {
  tensor::Execution stream = runtime::make_stream();
  runtime::Event written, summed;
};

template <class T>
class Reduction {
 public:
  /// Starts the reduction of a unit's `terms` after the work enqueued on `exec`. All referenced
  /// objects must live until finish(). A stream has at most one reduction in flight. Collective
  /// over the communicator's group.
  Reduction(const tensor::Execution& exec, ReductionStream& stream, comm::Communicator& comm,
            const Bucket& bucket, const param::UnitLayout& layout, const UnitGradients<T>& terms,
            const UnitSums<T>& sums, Result result, Order order, const SumPlan& plan, Index round);

  /// Finishes the messages and the sums. Later work on `exec` sees the sums. With
  /// Result::all_reduced, the rounded shards are still being gathered into terms.whole on return.
  /// Wait for the returned request before reading them.
  comm::Request finish();

 private:
  comm::Slice slice(Index number) const;
  /// A rank's shard of this rank's gradient of its first chunk, or another one.
  T* shard(Index rank, Index chunk = 0) const {
    return terms_.first + chunk * terms_.stride + rank * layout_->shard;
  }
  bool is_alone() const { return comm_->size() == 1 || order_ == Order::library; }
  Index place() const { return plan_->on_nodes().place_of(comm_->rank()); }
  Index node() const { return plan_->on_nodes().node_of(comm_->rank()); }
  void sum_all();
  void begin(Index number);
  void begin_library_sum();
  void begin_gradients(Index number);
  void keep_own_terms(Index number) const;
  void collect_in_node(Index number) const;
  void add_in_node(Index number) const;
  void begin_node_sums(Index number);
  void add_up(Index number) const;
  comm::Request exchange(std::vector<comm::ConstSpan> send, std::vector<comm::Span> receive) const;
  comm::Request gather(Index number) const;

  const tensor::Execution* exec_;
  ReductionStream* stream_;
  comm::Communicator* comm_;
  const Bucket* bucket_;
  const param::UnitLayout* layout_;
  UnitGradients<T> terms_;
  UnitSums<T> sums_;
  Result result_;
  Order order_;
  const SumPlan* plan_;
  Index round_;
  Index slices_ = 0;
  bool summed_ = false;
  comm::Request last_gather_ = 0;
  std::vector<comm::Request> requests_;  // to wait for before a slice can be added up
};

}  // namespace kzero::zero
