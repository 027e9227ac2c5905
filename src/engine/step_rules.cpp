#include "engine/step_rules.hpp"

#include <cmath>

namespace kzero::engine {

void decide_skip(StepResult& result, const optim::SpikeRule& spikes) {
  result.norm_limit = spikes.limit();
  const bool is_beyond = result.norm_limit && result.grad_norm > *result.norm_limit;
  result.skipped = !std::isfinite(result.grad_norm) || is_beyond;
}

void record(const StepResult& result, optim::LossScaler& scaler, optim::SpikeRule& spikes) {
  if (result.is_spike()) {
    scaler.leave_out_spike();
    spikes.skip();
    return;
  }
  scaler.update(!result.skipped);
  if (!result.skipped) spikes.add(result.grad_norm);
}

}  // namespace kzero::engine
