#include "run/screen.hpp"

namespace kzero::run {

metrics::Screen screen_of(deck::ProgressStyle style, Index rank) {
  switch (style) {
    case deck::ProgressStyle::live:
      return metrics::live_screen(rank);
    case deck::ProgressStyle::plain:
      return metrics::plain_screen(rank);
    case deck::ProgressStyle::automatic:
      break;
  }
  return metrics::found_screen(rank);
}

}  // namespace kzero::run
