// Values of choices that earlier versions spelled otherwise. A deck with such a spelling is refused
// by an error that names the successor; decks inside checkpoints are compared by it.
#pragma once

#include <string_view>

namespace kzero::deck {

/// Returns the present name of the value `name` of the key with this path; empty if it never was a
/// name, or still is.
std::string_view successor_of(std::string_view path, std::string_view name);

}  // namespace kzero::deck
