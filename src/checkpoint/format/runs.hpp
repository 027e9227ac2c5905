// Ranges in stored form. A column of a matrix is thousands of short ranges of equal length and
// distance. They are one entry here.
#pragma once

#include <vector>

#include "checkpoint/format/state_shard.hpp"

namespace kzero::checkpoint {

/// `repeat` ranges of `count` elements. Each begins `stride` elements after the previous one.
struct Run {
  Index begin = 0;
  Index count = 0;
  Index stride = 0;
  Index repeat = 0;
  bool operator==(const Run&) const = default;
};

/// Both keep the elements and their order.
std::vector<Run> compact(const std::vector<Range>& ranges);
std::vector<Range> expand(const std::vector<Run>& runs);

Index elements_of(const std::vector<Run>& runs);

}  // namespace kzero::checkpoint
