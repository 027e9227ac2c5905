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
#include "tensor/view.hpp"

namespace kzero::engine {

class ParameterSums {
 public:
  /// Allocates host memory on every rank for the sums of all passes and the reduced arrays of all
  /// parameters, and device memory for the sums of a pass if `updates_on_device`. A single-pass
  /// optimizer needs none.
  ParameterSums(memory::Arenas& arenas, const Blueprint& blueprint, bool updates_on_device);

  /// Sets the words of a non-final pass to zero, on a device by work that it enqueues.
  void clear(const tensor::Execution& exec, int pass) const;
  /// The words of the sums of a unit's parameters to which the pass adds, in the memory of updates.
  std::uint64_t* adds(int pass, Index unit) const;
  /// Waits for the words of a pass, and copies them to host memory.
  void read(const tensor::Execution& exec, int pass) const;

  /// The words of the sums of a unit's parameters that were read.
  std::uint64_t* of(int pass, Index unit) const;
  /// All words of a pass that were read. The caller adds them over all ranks.
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
  std::uint64_t* on_device_ = nullptr;  // the words of the current pass; null: those in passes_
  Values<float> reduced_;
};

}  // namespace kzero::engine
