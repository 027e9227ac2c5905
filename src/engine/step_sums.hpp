// The sums of a step: the losses of each chunk of its micro-batches, the squares of the gradients,
// and how often routers chose each expert. They stay on the device until the host reads them all at
// the end of the step.
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
  /// Allocates room for the numbers of at least `rounds` micro-batches, the losses of `chunks`
  /// chunks and then `figures` others, and for the choices of `experts` experts of all blocks, from
  /// the io category. Validations use the additional room. If the host cannot read there, also
  /// allocates from the offloaded category.
  StepSums(memory::Arenas& arenas, Index rounds, Index chunks, Index experts = 0,
           Index figures = 0);

  /// The number of micro-batches whose losses fit.
  Index rounds() const { return rounds_; }

  /// Enqueues the reset of all sums to zero.
  void clear(const tensor::Execution& exec) const;

  /// The sums of losses of the chunks of micro-batch `round`, then its figures, in device memory.
  double* loss(Index round) const { return losses_of(device_) + round * width(); }

  /// The numbers of a micro-batch.
  Index width() const { return chunks_ + figures_; }

  /// The choices of each expert [experts], in device memory; null if there are none.
  std::uint64_t* expert_choices() const { return experts_ > 0 ? choices_of(device_) : nullptr; }

  /// Enqueues the addition of the squares of ranges of units.
  template <class T>
  void add_squares(const tensor::Execution& exec, const kernels::SquaresTable<T>& ranges) const;

  /// Copies the sums to the host and waits. On devices this is the only wait of a step, but for
  /// those of blocks with experts.
  void read(const tensor::Execution& exec) const;

  /// The values read: the numbers of the first `count` micro-batches [count * width()], and the sum
  /// of squares.
  std::span<const double> losses(Index count) const {
    return {losses_of(host_), static_cast<std::size_t>(count * width())};
  }
  kernels::ExactSum squares() const { return *sum_of(host_); }
  std::span<const std::uint64_t> choices() const {
    return {choices_of(host_), static_cast<std::size_t>(experts_)};
  }

 private:
  // Words: the sum of squares, then the numbers of each micro-batch, then the choices.
  kernels::ExactSum* sum_of(std::uint64_t* words) const {
    return reinterpret_cast<kernels::ExactSum*>(words);
  }
  double* losses_of(std::uint64_t* words) const {
    return reinterpret_cast<double*>(words + kernels::ExactSum::words_of_sum);
  }
  std::uint64_t* choices_of(std::uint64_t* words) const {
    return words + kernels::ExactSum::words_of_sum + rounds_ * width();
  }
  Index words() const { return kernels::ExactSum::words_of_sum + rounds_ * width() + experts_; }

  Index rounds_, chunks_, experts_, figures_;
  std::uint64_t *device_, *host_;  // equal in host builds
  kernels::ExactSum* part_;
};

/// Returns the sum of a plan's losses. `all` contains the `width` numbers of all rounds, rank after
/// rank: the losses of own chunks come first. They are added in the order of micro-batches and
/// their chunks.
double sum_of_losses(const data::BatchPlan& plan, std::span<const double> all, Index width);

/// Returns the sum of the figures of own chunks, one each, added as losses are.
double sum_of_chunk_figures(const data::BatchPlan& plan, std::span<const double> all, Index width);

/// Returns the sum of a figure, of those that follow the losses, in the order of micro-batches.
double sum_of_figure(const data::BatchPlan& plan, std::span<const double> all, Index width,
                     Index figure);

}  // namespace kzero::engine
