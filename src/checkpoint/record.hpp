// A shard's record as a message between ranks.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/manifest.hpp"

namespace kzero::checkpoint {

std::string pack(const Shard& shard);
Shard unpack(const std::string& bytes, std::string file);

}  // namespace kzero::checkpoint
