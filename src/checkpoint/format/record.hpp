// Serializes a shard file's record as a message between ranks.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/format/manifest.hpp"

namespace kzero::checkpoint {

std::string pack(const ShardFile& shard_file);
ShardFile unpack(const std::string& bytes, std::string file);

}  // namespace kzero::checkpoint
