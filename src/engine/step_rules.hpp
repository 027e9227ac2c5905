// The rules that decide whether a step is applied: gradients that are not finite, and spikes of
// their norm.
#pragma once

#include "engine/engine.hpp"

namespace kzero::engine {

/// Sets the limit of the step's norm, and whether the step is skipped.
void decide_skip(StepResult& result, const optim::SpikeRule& spikes);

/// Records a decided step for the rules of later steps.
void record(const StepResult& result, optim::LossScaler& scaler, optim::SpikeRule& spikes);

}  // namespace kzero::engine
