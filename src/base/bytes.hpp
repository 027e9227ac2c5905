// Byte counts as people write them, in binary units only.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero {

/// "1.50 GiB", "32 KiB", "17 B": the largest unit in which the count is at least one.
std::string format_bytes(Index bytes);

}  // namespace kzero
