// The deterministic reduce-scatter of one unit's gradients. After an all-to-all through the bucket,
// each owner adds the ranks' values to the sum of the previous rounds, in rank order and in fp32.
// The reduction sends as much as a ring. Its bits do not depend on a library's algorithm.
// Order::library selects the library's reduce-scatter instead.
#pragma once

#include "comm/gather.hpp"
#include "deck/config.hpp"
#include "runtime/event.hpp"
#include "tensor/view.hpp"
#include "zero/bucket.hpp"

namespace kzero::zero {

/// The destination of a rank's own shard of the sum: `fp32` for the unrounded sum, or `cast` for
/// the sum rounded once. `base` is added unless it is null.
template <class T>
struct OwnedSum {
  const float* base = nullptr;
  float* fp32 = nullptr;
  T* cast = nullptr;
};

/// Whether the sum stays with its owner or is gathered to every rank.
enum class Result { reduce_scattered, all_reduced };

/// The order of summation: by rank, or the order of the collectives library.
using Order = deck::ReductionOrder;

/// The terms of a sum: the gradients of the first `ranks` ranks. The other ranks send nothing.
struct Terms {
  Order order = Order::ranks;
  int ranks = 1;
};

/// The stream for collectives and sums, which run concurrently with the model's kernels.
struct ReductionStream {
  tensor::Execution stream = runtime::make_stream();
  runtime::Event written, summed;
};

template <class T>
class Reduction {
 public:
  /// Starts the reduction of `unit` [layout.padded] after the work enqueued on `exec`. All
  /// referenced objects must live until finish(). A stream has at most one reduction in flight.
  /// Collective over the communicator's group.
  Reduction(const tensor::Execution& exec, ReductionStream& stream, comm::Communicator& comm,
            const Bucket& bucket, const param::UnitLayout& layout, T* unit, const OwnedSum<T>& sum,
            Result result, const Terms& terms);

  /// Finishes the all-to-all and the sums. Later work on `exec` sees the sums. With
  /// Result::all_reduced, the rounded shards are still being gathered into the unit on return. Wait
  /// for the returned request before reading them.
  comm::Request finish();

 private:
  comm::Slice slice(Index number) const;
  void sum_all();
  void begin(Index number);
  void begin_library_sum();
  void add_up(Index number) const;
  comm::Request gather(Index number) const;

  const tensor::Execution* exec_;
  ReductionStream* stream_;
  comm::Communicator* comm_;
  const Bucket* bucket_;
  const param::UnitLayout* layout_;
  T* unit_;
  OwnedSum<T> sum_;
  Result result_;
  Terms terms_;
  Index slices_ = 0;
  bool summed_ = false;
  comm::Request last_gather_ = 0;
  std::vector<comm::Request> requests_;
};

}  // namespace kzero::zero
