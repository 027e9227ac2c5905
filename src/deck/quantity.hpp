// Parses and formats sizes and times as in decks ("32MiB", "1h30min"), exactly. Knows nothing of
// keys or files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace kzero::deck {

/// Returns the integer that the value is; empty if it has a fraction or is above 2^53, where
/// doubles skip integers.
std::optional<Index> whole_number(double value);

/// Parses the integer of "64", "4.0", "1e3"; empty if the text is no such number.
std::optional<Index> parse_count(std::string_view text);

/// Parses the bytes of "4096", "512B", "32MiB", "1 GiB", "32MB": binary (KiB, MiB, GiB, TiB) and
/// decimal (kB, MB, GB, TB) units; empty if the text is no size.
std::optional<Index> parse_size(std::string_view text);

/// Formats the size in the largest binary unit that divides it, as parse_size reads it: "32MiB".
std::string format_size(Index bytes);

/// Parses the seconds of "45s", "90min", "1h30min", "2d", "0.5h", "60" (d, h, min, s, each at most
/// once, in this order); empty if the text is no time.
std::optional<double> parse_duration(std::string_view text);

/// Formats the time as parse_duration reads it, to the last bit: "1h30min", "0s", "0.25s".
std::string format_duration(double seconds);

}  // namespace kzero::deck
