// Round trips between two ranks: the latency of small messages and the bandwidth of large ones.
// Waiting threads yield, so that ranks that share cores let each other work.
#pragma once

#include "grid/group.hpp"

namespace kzero::probe {

/// One-way figures: halves of round trips.
struct Link {
  double latency_seconds = 0;   // of 8 bytes: lowest median of eight consecutive round trips
  double bytes_per_second = 0;  // of the fastest 4 MiB message, or a smaller one on a slow link
};

/// Measures the link to `partner`, which must call this at the same time with this rank as its
/// partner. Both get the same figures. Takes about a second, or longer if a few messages of 1 MiB
/// do.
Link measure_link(const grid::Group& group, int partner);

/// Waits until every rank is here. The wait sleeps, so that it uses no core of ranks that are still
/// measuring. Collective over `group`.
void wait_for_all(const grid::Group& group);

}  // namespace kzero::probe
