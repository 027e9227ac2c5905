// Weights in files: where initial ones come from, and which parameters a checkpoint holds.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "checkpoint/format/manifest.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "param/spec.hpp"

namespace kzero::engine {

/// Writes the initial weights of elements `range` of a parameter to `values`, in fp32.
using InitialValues = std::function<void(const param::ParamSpec& parameter,
                                         const checkpoint::Range& range, std::span<float> values)>;

/// Returns the parameters of the recorded model, or of its adapters alone, in the order of the
/// model's table. Not collective.
std::vector<checkpoint::Parameter> saved_parameters(const checkpoint::Manifest& manifest);

}  // namespace kzero::engine
