// How evenly the routers of a model share tokens out among experts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace kzero::metrics {

/// Of each block: the choices of its busiest expert over the mean, and the entropy of the shares
/// over that of equal shares, ln E. Both are 1 if all experts have equal shares.
struct ExpertLoad {
  std::vector<double> largest{}, entropy{};
};

/// The load of a step. choices [layers, experts]; empty: the model has no experts. A block without
/// choices has 0.
ExpertLoad expert_load(std::span<const std::uint64_t> choices, Index layers);

}  // namespace kzero::metrics
