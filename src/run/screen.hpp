// How the output of a run is displayed.
#pragma once

#include "deck/config.hpp"
#include "metrics/console.hpp"

namespace kzero::run {

/// Returns the display of the run on rank 0. Every other rank is silent.
metrics::Screen screen_of(deck::ProgressStyle style, Index rank);

}  // namespace kzero::run
