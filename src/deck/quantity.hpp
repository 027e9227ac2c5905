// Sizes and times as decks write them ("32MiB", "1h30min") and back, exactly.
// Knows nothing of keys or files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace kzero::deck {

/// The integer that the value is; nothing if it has a fraction or is above 2^53, where doubles skip
/// integers.
std::optional<Index> whole_number(double value);

/// The integer of "64", "4.0", "1e3"; nothing if it is no such number.
std::optional<Index> parse_count(std::string_view text);

/// Bytes of "4096", "512B", "32MiB", "1 GiB", "32MB": binary (KiB, MiB, GiB, TiB) and decimal (kB,
/// MB, GB, TB) units; nothing if it is no size.
std::optional<Index> parse_size(std::string_view text);

/// The size in the largest binary unit that divides it, as parse_size reads it: "32MiB".
std::string format_size(Index bytes);

/// Seconds of "45s", "90min", "1h30min", "2d", "0.5h", "60" (d, h, min, s, each at most once, in
/// this order); nothing if it is no time.
std::optional<double> parse_duration(std::string_view text);

/// The time as parse_duration reads it, to the last bit: "1h30min", "0s", "0.25s".
std::string format_duration(double seconds);

}  // namespace kzero::deck
