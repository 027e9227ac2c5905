// Memory for values of known lifetimes. All offsets are computed before the first step, so memory
// cannot fragment (the paper's M_D, section 6.3).
#pragma once

#include <vector>

#include "base/types.hpp"

namespace kzero::zero {

/// A value of `elements` that is needed from operation `first` to operation `last`, inclusive.
struct Lifetime {
  Index unit = 0;
  Index first = 0, last = 0;
  Index elements = 0;
  Index offset = 0;  // set by assign_offsets()
};

/// Assigns offsets so that no two values share an element at the same time. Places the largest
/// value first. Each value gets the lowest offset that is free during its lifetime. Rounds
/// `elements` up to param::shard_alignment. Returns the total number of elements.
Index assign_offsets(std::vector<Lifetime>& values);

}  // namespace kzero::zero
