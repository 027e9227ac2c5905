// The source of initial weights, if they are not random.
#pragma once

#include <functional>
#include <span>

#include "checkpoint/format/state_shard.hpp"
#include "param/spec.hpp"

namespace kzero::engine {

/// Writes the initial weights of elements `range` of a parameter to `values`, in fp32.
using InitialValues = std::function<void(const param::ParamSpec& parameter,
                                         const checkpoint::Range& range, std::span<float> values)>;

}  // namespace kzero::engine
