// The arrays that an optimizer keeps of every parameter. It declares them once: buffers, memory
// plan, checkpoints and their hash follow the declaration and know no optimizer.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::param {

/// An array of fp32 values, one for each element of every parameter.
struct StateArray {
  std::string name;  // in checkpoints
  bool operator==(const StateArray&) const = default;
};

/// The arrays of one optimizer, in the order of its declaration. The first are the master weights.
using StateArrays = std::vector<StateArray>;

/// No optimizer may declare more: an element's values are hashed as two words of 64 bits.
inline constexpr Index most_state_arrays = 4;

inline const std::string master_weights = "master";

/// "master, first_moment, ..." for messages.
inline std::string names_of(const StateArrays& arrays) {
  std::string names;
  for (const StateArray& array : arrays) names += (names.empty() ? "" : ", ") + array.name;
  return names;
}

/// Bytes that all arrays together take for an element of a parameter: K of the ZeRO paper (section
/// 3.1), where AdamW has K = 12.
inline Index bytes_per_element(const StateArrays& arrays) {
  return static_cast<Index>(arrays.size() * sizeof(float));
}

}  // namespace kzero::param
