// The frozen parameters of a run: set once, from a file or the seed, and never updated. They are in
// the run's precision alone.
#pragma once

#include <cstdint>

#include "engine/blueprint.hpp"
#include "engine/stored_weights.hpp"
#include "grid/process_grid.hpp"
#include "tensor/view.hpp"
#include "zero/parameter_store.hpp"

namespace kzero::engine {

template <class T>
class FrozenWeights {
 public:
  /// The arguments must outlive the object.
  FrozenWeights(const Blueprint& blueprint, const grid::ProcessGrid& grid, std::uint64_t seed)
      : blueprint_(blueprint), grid_(grid), seed_(seed) {}

  /// Returns whether all parameters train.
  bool empty() const;

  /// Sets every frozen unit from `values` if given, otherwise from the seed. Returns a hash of the
  /// values before they are rounded (see checkpoint::StateShardHash), which no grid or stage
  /// changes; 0 if there are none. Uses a chunk of memory that no plan counts, before the first
  /// step. Throws on every rank if `values` throws on one. Collective over all ranks of the grid.
  std::uint64_t initialise(const tensor::Execution& exec, zero::ParameterStore<T>& parameters,
                           comm::Communicator& data, const InitialValues& values) const;

 private:
  std::uint64_t set_own(const tensor::Execution& exec, const zero::ParameterStore<T>& parameters,
                        const InitialValues& values) const;

  const Blueprint& blueprint_;
  const grid::ProcessGrid& grid_;
  std::uint64_t seed_;
};

}  // namespace kzero::engine
