// The shards that a rank saves to or wants from a checkpoint: ranges of parameters with their
// optimizer state. Ranges are of the parameter's global, unpadded, row-major elements, independent
// of the run's grid.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "param/state_array.hpp"

namespace kzero::checkpoint {

class Staging;

struct Range {
  Index begin = 0;
  Index count = 0;
  bool operator==(const Range&) const = default;
};

inline Index elements_of(const std::vector<Range>& ranges) {
  Index sum = 0;
  for (const Range& range : ranges) sum += range.count;
  return sum;
}

/// Bytes of one element of a state array, in memory and in files.
inline constexpr Index value_bytes = sizeof(float);

/// One state array of a shard, with the name that the optimizer declared.
struct StateValues {
  std::string name;
  std::span<float> values;
};

/// The ranges of one parameter that one rank holds, ascending and disjoint, and their state arrays
/// in the order of declaration. Each array is the ranges' concatenation.
struct StateShard {
  std::string parameter;
  std::vector<Range> ranges;
  std::vector<StateValues> arrays{};
  Staging* staging = nullptr;  // for values that the host cannot access; else null

  /// Returns the values of the array `name`; empty if it does not exist.
  std::span<float> values(std::string_view name) const {
    for (const StateValues& array : arrays) {
      if (array.name == name) return array.values;
    }
    return {};
  }
};

/// Returns whether the shard has exactly these arrays in this order.
inline bool has_arrays(const StateShard& shard, const param::StateArrays& wanted) {
  return std::ranges::equal(shard.arrays, wanted, {}, &StateValues::name, &param::StateArray::name);
}

}  // namespace kzero::checkpoint
