// What a rank gives to a checkpoint or wants from one: ranges of parameters with their optimizer
// state. Ranges are of the parameter's global, unpadded, row-major elements, whatever grid a run
// has.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::checkpoint {

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

/// The three arrays of float32 that are kept of every parameter, under their names in the files.
inline constexpr Index state_count = 3;
inline constexpr std::array<const char*, state_count> state_names{"master", "first_moment",
                                                                  "second_moment"};

/// The ranges of one parameter that one rank holds, ascending and disjoint; each array is their
/// concatenation in host memory.
struct StateShard {
  std::string parameter;
  std::vector<Range> ranges;
  std::span<float> master;
  std::span<float> first_moment;
  std::span<float> second_moment;

  std::array<std::span<float>, state_count> states() const {
    return {master, first_moment, second_moment};
  }
};

}  // namespace kzero::checkpoint
