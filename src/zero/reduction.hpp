// The deterministic reduce-scatter of one unit's gradients: an all-to-all through the bucket, then
// each owner adds the ranks' values in rank order in fp32. It sends what a ring sends, and its bits
// depend on no library's algorithm.
#pragma once

#include "comm/gather.hpp"
#include "tensor/view.hpp"
#include "zero/bucket.hpp"

namespace kzero::zero {

/// Where the sum of the own piece goes: unrounded to `wide`, or rounded once to `rounded`; `base`
/// is added to it unless null.
template <class T>
struct OwnedSum {
  const float* base = nullptr;
  float* wide = nullptr;
  T* rounded = nullptr;
};

/// Whether the sum stays with its owner or goes to every rank.
enum class Result { scattered, everywhere };

template <class T>
class Reduction {
 public:
  /// Begins the exchange of `unit` [layout.padded], which has been written. All referenced things
  /// must live until finish(). Collective over the communicator's group.
  Reduction(const tensor::Execution& exec, comm::Communicator& comm, const Bucket& bucket,
            const param::UnitLayout& layout, T* unit, const OwnedSum<T>& sum, Result result);

  /// Ends the exchange and sums. With Result::everywhere the rounded pieces, which lie in the unit
  /// itself, are on their way to every rank on return: the ticket says when they have arrived.
  comm::Ticket finish();

 private:
  comm::Slice slice(Index number) const;
  void begin(Index number);
  void add_up(Index number) const;
  comm::Ticket gather(Index number) const;

  const tensor::Execution* exec_;
  comm::Communicator* comm_;
  const Bucket* bucket_;
  const param::UnitLayout* layout_;
  T* unit_;
  OwnedSum<T> sum_;
  Result result_;
  Index slices_ = 0;
  std::vector<comm::Ticket> tickets_;
};

}  // namespace kzero::zero
