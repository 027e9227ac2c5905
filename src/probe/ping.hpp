// Round trips between two ranks: the time of a small message, and the bytes per second of large
// ones. Waiting threads yield, so that ranks that share cores do not block each other.
#pragma once

#include "grid/group.hpp"

namespace kzero::probe {

/// Figures of one direction: half of a round trip.
struct Link {
  double latency_seconds = 0;   // of 8 bytes: the lowest median of eight round trips in a row
  double bytes_per_second = 0;  // fastest message of 4 MiB, or of a smaller one on a slow link
};

/// Measures the link to `partner`, which calls this at the same time with this rank as its partner.
/// Both get the same figures. Takes about a second, more if the link is so slow that a few messages
/// of 1 MiB take longer.
Link measure_link(const grid::Group& group, int partner);

/// Waits until every rank has called it. Sleeps between polls, so that ranks that are still
/// measuring keep their cores. Collective over `group`.
void wait_for_all(const grid::Group& group);

}  // namespace kzero::probe
