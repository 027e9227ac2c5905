// The deterministic reduce-scatter of one unit's gradients: an all-to-all through the bucket, then
// each owner adds the ranks' values in rank order in fp32. It sends what a ring sends, and its bits
// depend on no library's algorithm. The library's own sum can be asked for by name.
#pragma once

#include "comm/gather.hpp"
#include "deck/config.hpp"
#include "runtime/event.hpp"
#include "tensor/view.hpp"
#include "zero/bucket.hpp"

namespace kzero::zero {

/// Where the sum of the own shard goes: unrounded to `fp32`, or rounded once to `cast`; `base`
/// is added to it unless null.
template <class T>
struct OwnedSum {
  const float* base = nullptr;
  float* fp32 = nullptr;
  T* cast = nullptr;
};

/// Whether the sum stays with its owner or goes to every rank.
enum class Result { reduce_scattered, all_reduced };

/// Whose order sums take: the ranks', or whatever the library of collectives makes of it.
using Order = deck::ReductionOrder;

/// Where exchanges and sums take their turn beside the model's kernels.
struct ReductionStream {
  tensor::Execution stream = runtime::make_stream();
  runtime::Event written, summed;
};

template <class T>
class Reduction {
 public:
  /// Begins the exchange of `unit` [layout.padded], as `exec` will have written it. All referenced
  /// things must live until finish(); one reduction is under way on a stream at a time. Collective
  /// over the communicator's group.
  Reduction(const tensor::Execution& exec, ReductionStream& stream, comm::Communicator& comm,
            const Bucket& bucket, const param::UnitLayout& layout, T* unit, const OwnedSum<T>& sum,
            Result result, Order order);

  /// Ends the exchange and sums: `exec` sees the sums. With Result::all_reduced the rounded shards,
  /// which lie in the unit itself, are on their way to every rank on return: the request says when
  /// they have arrived.
  comm::Request finish();

 private:
  comm::Slice slice(Index number) const;
  void sum_all();
  void begin(Index number);
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
  Order order_;
  Index slices_ = 0;
  bool summed_ = false;
  comm::Request last_gather_ = 0;
  std::vector<comm::Request> requests_;
};

}  // namespace kzero::zero
