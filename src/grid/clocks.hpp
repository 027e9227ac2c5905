// The clocks of a launch's processes against one another, and what processes hand to the root in
// turn.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "grid/group.hpp"

namespace kzero::grid {

/// This process's clock against the root's, in nanoseconds.
struct ClockOffset {
  std::int64_t ahead = 0;     // to subtract from this process's times
  std::int64_t accuracy = 0;  // half the fastest round trip, by which `ahead` may be wrong
};

/// Returns whether this process is on the root's node, where steady clocks are one. Collective over
/// the group.
bool is_on_root_node(const Group& group);

/// Measures the offset of `clock()`, nanoseconds of a steady clock, by round trips between the root
/// and each rank that does not share its clock, in turn; of each rank's the fastest counts
/// (Cristian, Distributed Computing 3, 1989). Collective over the group.
ClockOffset measure_offset(const Group& group, std::int64_t (*clock)(), bool shares_clock);

/// Hands every rank's bytes to the root, one rank's after another's in rank order, as blocks of at
/// most 1 MiB; `take` is called on the root alone and must not throw. Collective over the group.
void hand_to_root(const Group& group, std::span<const std::byte> mine,
                  const std::function<void(int rank, std::span<const std::byte>)>& take);

}  // namespace kzero::grid
