// The part of a step after its gradients are complete: the gradient norm, and the optimizer's
// passes over this rank's state.
#pragma once

#include <vector>

#include "engine/buffers.hpp"
#include "engine/engine.hpp"
#include "engine/router_balance.hpp"
#include "engine/state_shards.hpp"
#include "kernels/reduction.hpp"
#include "optim/optimizer.hpp"

namespace kzero::engine {

template <class T>
class OptimizerStep {
 public:
  /// The arguments must outlive the object. `states` contains all units in order.
  OptimizerStep(const Blueprint& blueprint, Machinery& machinery, Buffers<T>& buffers,
                const std::vector<UnitState>& states)
      : blueprint_(blueprint), machinery_(machinery), buffers_(buffers), states_(states) {}

  /// Enqueues the addition of the gradient's squares to the step's sums. Each element counts only
  /// on the rank that owns it. If several tensor ranks hold copies, only the first one counts. The
  /// sum over all ranks is exact (kernels::ExactSum).
  void add_squares();

  /// Updates the state and the parameters, then gathers the parameters that other ranks updated.
  /// `balance` changes the biases of routers. Collective over the world.
  void update(optim::Update update, const RouterBalance& balance);

 private:
  void add_squares(Index unit, Index begin, Index end, kernels::SquaresTable<T>& ranges);
  void add_squares(kernels::SquaresTable<T>& ranges);
  void add_up(const optim::Update& update);
  void change_parameters(const optim::Update& update, const RouterBalance& balance);
  optim::Share<T> share_of(Index u, const optim::Update& update, const zero::Range& range) const;
  void apply(const optim::Update& update, const optim::Share<T>& share);
  void orthogonalize_matrices(const optim::Update& update);

  const Blueprint& blueprint_;
  Machinery& machinery_;
  Buffers<T>& buffers_;
  const std::vector<UnitState>& states_;
};

}  // namespace kzero::engine
