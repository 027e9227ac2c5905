// The sums over whole parameters that an optimizer of several passes needs between them
// (optim/optimizer.hpp). They are exact, so neither the number of ranks nor the order in which
// elements are added shows in them.
#pragma once

#include <span>
#include <vector>

#include "kernels/exact_sum.hpp"
#include "memory/arenas.hpp"
#include "train/blueprint.hpp"

namespace kzero::train {

class ParameterSums {
 public:
  /// Takes host memory for the sums of all passes; none for an optimizer of one pass.
  ParameterSums(memory::Arenas& arenas, const Blueprint& blueprint);

  /// The sums of a unit's parameters in a pass, but the last.
  kernels::ExactSum* of(int pass, Index unit) const {
    return passes_[static_cast<std::size_t>(pass)].of_unit[static_cast<std::size_t>(unit)];
  }

  /// Sets the sums of a pass to zero.
  void clear(int pass) const;

  /// Moves carries up and returns the words of a pass' sums, to be added to those of other ranks.
  std::span<std::uint64_t> words(int pass) const;

 private:
  struct Pass {
    std::span<kernels::ExactSum> all;
    std::vector<kernels::ExactSum*> of_unit;
  };

  std::vector<Pass> passes_;
};

}  // namespace kzero::train
