// What an optimizer of several passes has of full parameters (optim/optimizer.hpp): the words of
// the sums that it needs between passes, which are integers, so that neither the number of ranks
// nor the order in which elements are added shows in them; and what it keeps of rows and columns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/blueprint.hpp"
#include "memory/arenas.hpp"
#include "optim/optimizer.hpp"

namespace kzero::engine {

class ParameterSums {
 public:
  /// Takes host memory for the sums of all passes and the reduced arrays of all parameters, on
  /// every rank; none for an optimizer of one pass.
  ParameterSums(memory::Arenas& arenas, const Blueprint& blueprint);

  /// The words of the sums of a unit's parameters in a pass, but the last.
  std::uint64_t* of(int pass, Index unit) const;
  /// All words of a pass, to be added to those of other ranks.
  std::span<std::uint64_t> words(int pass) const;

  /// The reduced arrays of a unit's parameters, and those of all, in the order of the table.
  float* reduced(Index unit) const;
  std::span<float> reduced() const { return reduced_.all; }

  /// Lets the optimizer update the reduced arrays before a pass, with the sums of the pass before.
  void update_reduced(const optim::Update& update) const;

 private:
  /// Values of all parameters, one unit's after another's.
  template <class T>
  struct Values {
    std::span<T> all;
    std::vector<Index> begin;  // of each unit
  };

  const param::Table& table_;
  const optim::Optimizer& optimizer_;
  std::vector<Values<std::uint64_t>> passes_;
  Values<float> reduced_;
};

}  // namespace kzero::engine
