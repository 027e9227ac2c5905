#include "data/batch_sizes.hpp"

#include <algorithm>

namespace kzero::data {

BatchSizes::BatchSizes(const deck::Train& train) : phases_{{0, train.global_batch, 0}} {
  for (const deck::BatchPhase& phase : train.phases) {
    const Index sample = first_sample(phase.from_step);
    phases_.push_back({phase.from_step, phase.global_batch, sample});
  }
}

Index BatchSizes::phase_of(Index step) const {
  const auto after = std::ranges::upper_bound(phases_, step, {}, &Phase::first_step);
  return std::max<Index>(1, after - phases_.begin()) - 1;
}

Index BatchSizes::first_sample(Index step) const {
  const Phase& phase = phases_[phase_of(step)];
  return phase.first_sample + (step - phase.first_step) * phase.size;
}

Index BatchSizes::step_of(Index sample) const {
  const auto after = std::ranges::upper_bound(phases_, sample, {}, &Phase::first_sample);
  const Phase& phase = phases_[std::max<Index>(1, after - phases_.begin()) - 1];
  return phase.first_step + (sample - phase.first_sample) / phase.size;
}

void BatchSizes::continue_at(Index step, Index sample) {
  const Index moved = sample - first_sample(step);
  for (Phase& phase : phases_) phase.first_sample += moved;
}

}  // namespace kzero::data
