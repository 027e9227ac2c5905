// One number for all parameters and moments of a checkpoint, whatever grid holds them: what was
// loaded on another number of ranks is what was saved.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/manifest.hpp"
#include "checkpoint/piece.hpp"
#include "grid/group.hpp"

namespace kzero::checkpoint {

/// Where each parameter stands in the manifest's list.
using Positions = std::unordered_map<std::string, Index>;
Positions positions_of(const std::vector<Parameter>& parameters);

/// The sum modulo 2^64, over the piece's elements, of a mix of parameter, state, place and bits.
/// Sums over pieces that hold each element once are the same for every cut. A change of one element
/// always changes it.
std::uint64_t hash_of(const Piece& piece, Index position);

/// The sum over the ranks on the root; 0 elsewhere. Collective over `world`.
std::uint64_t sum_of_hashes(const grid::Group& world, std::uint64_t mine);

}  // namespace kzero::checkpoint
