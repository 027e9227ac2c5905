// Compares the clocks of a launch's processes, and sends data from each process to the root in
// turn.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "grid/group.hpp"

namespace kzero::grid {

/// The offset of this process's clock from the root's, in nanoseconds.
struct ClockOffset {
  std::int64_t ahead = 0;     // to subtract from this process's times
  std::int64_t accuracy = 0;  // largest error of `ahead`: half the fastest round trip
};

/// Returns whether this process is on the root's node, where all processes share the steady clock.
/// Collective over the group.
bool is_on_root_node(const Group& group);

/// Measures the offset of `clock()`, nanoseconds of a steady clock, from the root's. The root
/// exchanges round trips with each rank that does not share its clock, one rank after another, and
/// uses the fastest (Cristian, Distributed Computing 3, 1989). Collective over the group.
ClockOffset measure_offset(const Group& group, std::int64_t (*clock)(), bool shares_clock);

/// Sends every rank's bytes to the root in rank order, as blocks of at most 1 MiB. `take` is called
/// only on the root and must not throw. Collective over the group.
void hand_to_root(const Group& group, std::span<const std::byte> mine,
                  const std::function<void(int rank, std::span<const std::byte>)>& take);

}  // namespace kzero::grid
