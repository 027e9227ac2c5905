// The batch of each step of a training: its size, and the number of its first sample. Both are
// functions of the step, in closed form over the phases of the deck, so that a run resumes by its
// step number alone.
#pragma once

#include <vector>

#include "base/types.hpp"
#include "deck/config.hpp"

namespace kzero::data {

/// Steps whose batches have the same size, up to the first step of the next phase.
struct Phase {
  Index first_step = 0;
  Index size = 0;          // sequences of a batch, over all ranks
  Index first_sample = 0;  // of its first step

  bool operator==(const Phase&) const = default;
};

class BatchSizes {
 public:
  /// The first phase is that of train.global_batch.
  explicit BatchSizes(const deck::Train& train);

  const std::vector<Phase>& phases() const { return phases_; }

  /// The number, from 0, of a step's phase.
  Index phase_of(Index step) const;

  Index size(Index step) const { return phases_[phase_of(step)].size; }

  /// The number of the first sample of a step. All samples before it were in the batches of earlier
  /// steps.
  Index first_sample(Index step) const;

  /// The step, at or after that of continue_at(), whose batch has a sample.
  Index step_of(Index sample) const;

  /// Makes `sample` the first of step `step`: that of a checkpoint, which may have had other sizes
  /// before. Later steps follow without a gap.
  void continue_at(Index step, Index sample);

 private:
  std::vector<Phase> phases_;
};

}  // namespace kzero::data
