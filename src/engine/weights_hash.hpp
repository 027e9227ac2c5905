// A hash that names a model by its weights, wherever they are stored.
#pragma once

#include <cstdint>

#include "deck/config.hpp"
#include "engine/stored_weights.hpp"
#include "grid/group.hpp"

namespace kzero::engine {

/// Returns a hash of all weights in fp32 except adapters (see checkpoint::StateShardHash). `config`
/// may be of any grid and precision. The ranks divide the weights. Throws on every rank if `values`
/// throws on one. Collective over the group.
std::uint64_t weights_hash(const grid::Group& world, const deck::Config& config,
                           const InitialValues& values);

}  // namespace kzero::engine
