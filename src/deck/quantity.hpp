// Sizes and times as decks write them ("32MiB", "1h30min") and back, exactly.
// Knows nothing of keys or files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace kzero::deck {

/// Bytes of "4096", "512B", "32MiB", "1 GiB" (B, KiB, MiB, GiB, TiB); nothing if it is no size.
std::optional<Index> parse_size(std::string_view text);

/// The size in the largest unit that divides it, as parse_size reads it: "32MiB".
std::string format_size(Index bytes);

/// Seconds of "45s", "90min", "1h30min", "2d", "0.5h", "60" (d, h, min, s, each at most once, in
/// this order); nothing if it is no time.
std::optional<double> parse_duration(std::string_view text);

/// The time as parse_duration reads it, to the last bit: "1h30min", "0s", "0.25s".
std::string format_duration(double seconds);

}  // namespace kzero::deck
