// The loss of a micro-batch of pairs (preference.loss). A pair's loss depends on the sums of ln p
// of its two documents, so the head runs twice: for the losses of all rows, from which the weight
// of each row in the gradient follows, and for the gradient.
#pragma once

#include <span>

#include "deck/config.hpp"
#include "engine/engine.hpp"
#include "kernels/preference.hpp"
#include "memory/arenas.hpp"
#include "model/model.hpp"

namespace kzero::engine {

template <class T>
class PreferencePass {
 public:
  /// The numbers that a micro-batch adds to the sums of a step, after its loss.
  static constexpr Index figures = kernels::pair_figures;

  /// Takes memory for micro-batches of `rows` rows from the workspace category.
  PreferencePass(memory::Arenas& arenas, const deck::Preference& preference, Index rows);

  /// Runs the last unit forward and backward for scale * sum of the losses of the batch's pairs.
  /// Sets sums [1 + figures], in device memory, to the sums over its pairs.
  void loss_and_gradient(model::Model<T>& model, model::Units<const T> parameters,
                         const model::Batch& batch, float scale, tensor::Accumulate accumulate,
                         model::Units<T> gradients, double* sums) const;

  /// The means over the pairs of a step, from the sums of the figures.
  static PreferenceResult result(std::span<const double> of_step, Index pairs);

 private:
  kernels::PreferenceTerms terms_;
  tensor::Vector<float> weights_;           // [rows]
  tensor::Vector<kernels::PairSums> each_;  // as many pairs as the rows may hold
};

}  // namespace kzero::engine
