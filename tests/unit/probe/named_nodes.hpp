// The nodes of the tests' ranks: one, or the number that MPICH is configured to see
// (CMakeLists.txt).
#pragma once

#include <fmt/format.h>

#include "grid/nodes.hpp"
#include "grid/process_grid.hpp"

namespace kzero::probe {

/// A node has the name of its first rank.
inline grid::Nodes named_nodes(const grid::Group& world) {
  return {world, fmt::format("host{}", world.rank())};
}

}  // namespace kzero::probe
