// The sums of a step: the losses of each chunk of its micro-batches and the squares of the
// gradients. They stay on the device until the host reads them all at the end of the step.
#pragma once

#include <algorithm>
#include <span>

#include "data/sampler.hpp"
#include "kernels/reduction.hpp"
#include "memory/arenas.hpp"
#include "tensor/view.hpp"

namespace kzero::engine {

class StepSums {
 public:
  /// Allocates room for the losses of at least `rounds` micro-batches, `chunks` of each, from the
  /// io category. Validations use the additional room. If the host cannot read there, also
  /// allocates from the offloaded category.
  StepSums(memory::Arenas& arenas, Index rounds, Index chunks);

  /// The number of micro-batches whose losses fit.
  Index rounds() const { return rounds_; }

  /// Enqueues the reset of all sums to zero.
  void clear(const tensor::Execution& exec) const;

  /// The sums of losses of the chunks of micro-batch `round`, in device memory.
  double* loss(Index round) const { return losses_of(device_) + round * chunks_; }

  /// Enqueues the addition of the squares of ranges of units.
  template <class T>
  void add_squares(const tensor::Execution& exec, const kernels::SquaresTable<T>& ranges) const;

  /// Copies the sums to the host and waits. This is the only wait of a step.
  void read(const tensor::Execution& exec) const;

  /// The values read: the losses of the first `count` micro-batches [count * chunks], and the sum
  /// of squares.
  std::span<const double> losses(Index count) const {
    return {losses_of(host_), static_cast<std::size_t>(count * chunks_)};
  }
  kernels::ExactSum squares() const { return *sum_of(host_); }

 private:
  // Words: the sum of squares, then the losses.
  kernels::ExactSum* sum_of(std::uint64_t* words) const {
    return reinterpret_cast<kernels::ExactSum*>(words);
  }
  double* losses_of(std::uint64_t* words) const {
    return reinterpret_cast<double*>(words + kernels::ExactSum::words_of_sum);
  }
  Index words() const { return kernels::ExactSum::words_of_sum + rounds_ * chunks_; }

  Index rounds_, chunks_;
  std::uint64_t *device_, *host_;  // equal in host builds
  kernels::ExactSum* part_;
};

/// Returns the sum of a plan's losses. `all` contains those of all rounds and own chunks, rank
/// after rank. They are added in the order of micro-batches and their chunks.
double sum_of_losses(const data::BatchPlan& plan, std::span<const double> all);

}  // namespace kzero::engine
