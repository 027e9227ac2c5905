// Ranges as they are stored: a column of a matrix is thousands of short ranges, all of one length
// and one distance, which is one entry here.
#pragma once

#include <vector>

#include "checkpoint/format/state_shard.hpp"

namespace kzero::checkpoint {

/// `repeat` ranges of `count` elements each; each begins `stride` elements after the previous one.
struct Run {
  Index begin = 0;
  Index count = 0;
  Index stride = 0;
  Index repeat = 0;
  bool operator==(const Run&) const = default;
};

/// Encodes the same elements in the same order.
std::vector<Run> compact(const std::vector<Range>& ranges);
std::vector<Range> expand(const std::vector<Run>& runs);

Index elements_of(const std::vector<Run>& runs);

}  // namespace kzero::checkpoint
