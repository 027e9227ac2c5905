// Hashes of the gradients of the micro-batches that this rank computes in a step that is verified:
// of two computations, each with a word for the loss and one for every unit's gradient. They stay
// on the device until the end of the step.
#pragma once

#include <cstdint>
#include <span>

#include "memory/arenas.hpp"
#include "tensor/view.hpp"

namespace kzero::engine {

class GradientHashes {
 public:
  static constexpr Index computations = 2;

  /// Takes memory from the io category, and where the host cannot read there from the offloaded one
  /// too.
  GradientHashes(memory::Arenas& arenas, Index rounds, Index units);

  /// Enqueues the hash of a unit's gradient, as computed for this rank's micro-batch of `round`.
  template <class T>
  void take_gradient(const tensor::Execution& exec, Index computation, Index round, Index unit,
                     tensor::Vector<const T> gradient) const;

  /// Enqueues a copy of that micro-batch's loss, which is in device memory.
  void take_loss(const tensor::Execution& exec, Index computation, Index round,
                 const double* loss) const;

  /// Enqueues the copy of all words to the host.
  void read(const tensor::Execution& exec) const;

  /// The words that were read of a micro-batch: the bits of the loss, those of one NaN for all, and
  /// the hashes of the units.
  std::uint64_t loss(Index computation, Index round) const;
  std::span<const std::uint64_t> gradients(Index computation, Index round) const;

 private:
  Index begin(Index computation, Index round) const {
    return (computation * rounds_ + round) * (units_ + 1);
  }
  Index words() const { return begin(computations, 0); }

  Index rounds_, units_;
  std::uint64_t *device_, *host_;  // on hosts the same
};

}  // namespace kzero::engine
