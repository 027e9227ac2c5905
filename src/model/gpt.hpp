// The model as units that are run one by one: forward in order, the head with its loss, backward in
// reverse. Whoever drives it says where each unit's flat parameters and gradients lie; the model
// keeps activations, or computes them again; it knows its tensor group, and nothing of ZeRO.
#pragma once

#include <span>
#include <vector>

#include "kernels/embedding.hpp"
#include "model/block.hpp"
#include "model/head.hpp"
#include "model/residual_stream.hpp"

namespace kzero::model {

/// One micro-batch on the device: inputs and targets [N], and the inputs grouped by token.
struct Batch {
  Vector<const Token> inputs, targets;
  kernels::TokenGroups groups;
};

/// Flat units by number; an entry is null while its unit is not there.
template <class T>
using Units = std::span<T* const>;

template <class T>
class Gpt {
 public:
  /// Takes activations, workspace and the tensor group's bucket from the arenas (measuring ones
  /// too). Every function that runs a unit is collective over the tensor group.
  Gpt(memory::Arenas& arenas, const deck::Model& model, const deck::Recompute& recompute,
      const BatchShape& batch, tensor::Gemm* gemm, const TensorLink& link = {});

  Gpt(const Gpt&) = delete;  // its parts refer to one another
  Gpt& operator=(const Gpt&) = delete;

  Index head() const { return shape_.layers + 1; }

  /// Runs unit u < head().
  void forward(Index u, Units<const T> parameters, const Batch& batch);

  /// Runs the head; returns the sum of the micro-batch's losses (waits for it).
  double loss(Units<const T> parameters, const Batch& batch);

  /// Runs the head forward and backward for scale * sum of losses; returns that sum of losses
  /// (waits for it).
  double loss_and_gradient(Units<const T> parameters, const Batch& batch, float scale,
                           kernels::Update update, Units<T> gradients);

  /// Runs unit u < head() backward, in descending order after loss_and_gradient.
  void backward(Index u, Units<const T> parameters, const Batch& batch, kernels::Update update,
                Units<T> gradients);

  const Execution& exec() const { return *context_.exec; }

 private:
  void embed(const T* unit, const Batch& batch);
  void embed_backward(T* unit, const Batch& batch, kernels::Update update);
  template <class U>
  HeadParams<U> head_params(std::span<U* const> units) const;

  GptShape shape_;
  deck::RecomputeMode recompute_;
  Context<T> context_;
  ResidualStream<T> stream_;
  std::vector<BlockActivations<T>>
      saved_;  // of each block; what is computed again lies in one place
  HeadSaved<T> head_saved_;
  Matrix<T> dx_;  // [n,D]
};

}  // namespace kzero::model
