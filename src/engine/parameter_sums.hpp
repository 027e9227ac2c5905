// A multi-pass optimizer's values for full parameters (optim/optimizer.hpp): the sums between
// passes, and the state of rows and columns. The sums are integers, so they do not depend on the
// number of ranks or the order of addition.
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
  /// Allocates host memory on every rank for the sums of all passes and the reduced arrays of all
  /// parameters. A single-pass optimizer needs none.
  ParameterSums(memory::Arenas& arenas, const Blueprint& blueprint);

  /// The words of the sums of a unit's parameters in a non-final pass.
  std::uint64_t* of(int pass, Index unit) const;
  /// All words of a pass. The caller adds them over all ranks.
  std::span<std::uint64_t> words(int pass) const;

  /// The reduced arrays of a unit's parameters, and of all parameters in the order of the table.
  float* reduced(Index unit) const;
  std::span<float> reduced() const { return reduced_.all; }

  /// Lets the optimizer update the reduced arrays before a pass, using the sums of the previous
  /// pass.
  void update_reduced(const optim::Update& update) const;

 private:
  /// Values of all parameters, in the order of units.
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
