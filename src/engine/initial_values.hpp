// The source of initial weights that are not random.
#pragma once

#include <functional>
#include <span>

#include "checkpoint/format/state_shard.hpp"
#include "param/spec.hpp"

namespace kzero::engine {

/// Fills [range] of a parameter's elements with its initial weights, in fp32.
using InitialValues = std::function<void(const param::ParamSpec& parameter,
                                         const checkpoint::Range& range, std::span<float> values)>;

}  // namespace kzero::engine
