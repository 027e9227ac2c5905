// The sums of a step that stay on the device until its end, when the host reads them all at once:
// the loss of each micro-batch and the squares of the gradients.
#pragma once

#include <algorithm>
#include <span>

#include "kernels/exact_sum.hpp"
#include "memory/arenas.hpp"
#include "tensor/view.hpp"

namespace kzero::engine {

class StepSums {
 public:
  /// Takes memory for the losses of `rounds` micro-batches, and more where a validation needs it:
  /// from the io category, and where the host cannot read there from the offloaded one too.
  StepSums(memory::Arenas& arenas, Index rounds);

  /// The micro-batches whose losses there is room for.
  Index rounds() const { return rounds_; }

  /// Enqueues: all sums are zero.
  void clear(const tensor::Execution& exec) const;

  /// The sum of losses of micro-batch `round`, in device memory.
  double* loss(Index round) const { return losses_of(device_) + round; }

  /// Enqueues the addition of the squares of a unit's elements from number `first` on.
  template <class T>
  void add_squares(const tensor::Execution& exec, tensor::Vector<const T> x, Index first) const;

  /// Copies the sums to the host and waits: the only wait of a step.
  void read(const tensor::Execution& exec) const;

  /// What was read: the losses of the first `count` micro-batches, the sum of squares.
  std::span<const double> losses(Index count) const {
    return {losses_of(host_), static_cast<std::size_t>(count)};
  }
  kernels::ExactSum squares() const { return *sum_of(host_); }

 private:
  // Words: the sum of squares, the losses, and on the device the part of the sum that is added
  // next.
  kernels::ExactSum* sum_of(std::uint64_t* words) const {
    return reinterpret_cast<kernels::ExactSum*>(words);
  }
  double* losses_of(std::uint64_t* words) const {
    return reinterpret_cast<double*>(words + kernels::ExactSum::words_of_sum);
  }
  Index words() const { return kernels::ExactSum::words_of_sum + rounds_; }

  Index rounds_;
  std::uint64_t *device_, *host_;  // on hosts the same
  kernels::ExactSum* part_;
};

}  // namespace kzero::engine
