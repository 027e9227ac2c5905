// Gradient hashes of this rank's micro-batches in a verified step. Each of two computations has,
// for every micro-batch, a word for the loss and one per unit. The words stay on the device until
// the end of the step.
#pragma once

#include <cstdint>
#include <span>

#include "memory/arenas.hpp"
#include "tensor/view.hpp"

namespace kzero::engine {

class GradientHashes {
 public:
  static constexpr Index computations = 2;

  /// Allocates from the io category. If the host cannot read there, also allocates from the
  /// offloaded category.
  GradientHashes(memory::Arenas& arenas, Index rounds, Index units);

  /// Enqueues the hash of a unit's gradient for this rank's micro-batch of `round`.
  template <class T>
  void take_gradient(const tensor::Execution& exec, Index computation, Index round, Index unit,
                     tensor::Vector<const T> gradient) const;

  /// Enqueues a copy of the micro-batch's loss, which is in device memory.
  void take_loss(const tensor::Execution& exec, Index computation, Index round,
                 const double* loss) const;

  /// Enqueues the copy of all words to the host.
  void read(const tensor::Execution& exec) const;

  /// Return the words that read() copied for a micro-batch: the bits of the loss and the hashes of
  /// the units. Every NaN loss has the same bits.
  std::uint64_t loss(Index computation, Index round) const;
  std::span<const std::uint64_t> gradients(Index computation, Index round) const;

 private:
  Index begin(Index computation, Index round) const {
    return (computation * rounds_ + round) * (units_ + 1);
  }
  Index words() const { return begin(computations, 0); }

  Index rounds_, units_;
  std::uint64_t *device_, *host_;  // equal in host builds
};

}  // namespace kzero::engine
