// The arrays that an optimizer keeps for the parameters. It declares them once. Buffers, memory
// plan, checkpoints and their hash follow the declaration and are independent of the optimizer.
#pragma once

#include <string>
#include <vector>

#include "param/spec.hpp"

namespace kzero::param {

/// The parameters for which an array has values: all, or all that store no hidden matrices.
enum class Extent { all, all_but_matrices };

/// An array with one fp32 value for each element of every parameter in its extent.
struct StateArray {
  std::string name;  // in checkpoints
  Extent extent = Extent::all;

  bool operator==(const StateArray&) const = default;

  bool extends_to(const ParamSpec& p) const { return extent == Extent::all || !p.is_matrix(); }
};

/// The arrays of one optimizer, in the order of its declaration. The first are the master weights,
/// which cover all parameters.
using StateArrays = std::vector<StateArray>;

/// The most arrays that an optimizer may declare: an element's values are hashed as three words of
/// 64 bits.
inline constexpr Index max_state_arrays = 5;

inline const std::string master_weights = "master";
inline const std::string averaged_weights = "average";  // with optimizer.ema

/// "master, first_moment, ..." for messages.
inline std::string names_of(const StateArrays& arrays) {
  std::string names;
  for (const StateArray& array : arrays) {
    names += (names.empty() ? "" : ", ") + array.name;
    if (array.extent == Extent::all_but_matrices) names += " (not of hidden matrices)";
  }
  return names;
}

/// Bytes that all arrays together use for an element of a parameter that all of them cover: K of
/// the ZeRO paper (section 3.1), where AdamW has K = 12.
inline Index bytes_per_element(const StateArrays& arrays) {
  return static_cast<Index>(arrays.size() * sizeof(float));
}

}  // namespace kzero::param
