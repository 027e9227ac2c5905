// Messages between two ranks there and back: how long a small one takes, and how many bytes of
// large ones arrive in a second. Waiting threads yield, so that ranks that share cores let one
// another work.
#pragma once

#include "grid/group.hpp"

namespace kzero::probe {

/// Figures of one way, from round trips halved.
struct Link {
  double latency_seconds = 0;   // of 8 bytes: the lowest median of eight round trips in a row
  double bytes_per_second = 0;  // fastest message of 4 MiB, or of a smaller one on a slow link
};

/// Measures the link to `partner`, which calls this at the same time with this rank as its partner.
/// Both get the same figures. Takes about a second, more if the link is so slow that a few messages
/// of 1 MiB take longer.
Link measure_link(const grid::Group& group, int partner);

/// Waits until every rank is here, with sleeps in between: it takes no core from ranks that are
/// still measuring. Collective over `group`.
void wait_for_all(const grid::Group& group);

}  // namespace kzero::probe
