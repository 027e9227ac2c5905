// Formats byte counts for people, in binary units only.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero {

/// Formats the count in the largest unit in which it is at least one: "1.50 GiB", "32 KiB", "17 B".
std::string format_bytes(Index bytes);

}  // namespace kzero
