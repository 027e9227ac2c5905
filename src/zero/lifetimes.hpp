// Memory for values of known lifetimes: all offsets are computed before the first step, so that
// nothing can fragment (the paper's M_D, section 6.3).
#pragma once

#include <vector>

#include "base/types.hpp"

namespace kzero::zero {

/// A value of `elements` that is needed from operation `first` to operation `last`, both included.
struct Lifetime {
  Index unit = 0;
  Index first = 0, last = 0;
  Index elements = 0;
  Index offset = 0;  // set by assign_offsets
};

/// Assigns offsets so that no two values share an element at a time: the largest first, each at the
/// lowest offset that is free throughout its life. Returns the elements that all of them need.
Index assign_offsets(std::vector<Lifetime>& values);

}  // namespace kzero::zero
