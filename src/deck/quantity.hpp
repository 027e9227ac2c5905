// Parses and formats sizes and times as in decks ("32MiB", "1h30min"), exactly. Independent of keys
// and files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace kzero::deck {

/// Converts the value to an integer; empty if it has a fraction or is above 2^53, where doubles
/// skip integers.
std::optional<Index> whole_number(double value);

/// Parses the integer of "64", "4.0", "1e3"; empty if the text is not such a number.
std::optional<Index> parse_count(std::string_view text);

/// Parses the bytes of "4096", "512B", "32MiB", "1 GiB", "32MB". Units are binary (KiB, MiB, GiB,
/// TiB) or decimal (kB, MB, GB, TB). Empty if the text is not a size.
std::optional<Index> parse_size(std::string_view text);

/// Formats the size in the largest binary unit that divides it; parse_size reads it back: "32MiB".
std::string format_size(Index bytes);

/// Parses the seconds of "45s", "90min", "1h30min", "2d", "0.5h", "60": units d, h, min, s, each at
/// most once and in this order. Empty if the text is not a time.
std::optional<double> parse_duration(std::string_view text);

/// Formats the time so that parse_duration reads the same bits: "1h30min", "0s", "0.25s".
std::string format_duration(double seconds);

}  // namespace kzero::deck
