// A model in memory, computed unit by unit. With definition.hpp, which says what a model is before
// any memory exists, it is the seam between a model family and everything that trains one: a family
// implements both in files of its own and is registered in families.cpp.
#pragma once

#include <span>

#include "comm/communicator.hpp"
#include "kernels/embedding.hpp"
#include "memory/arenas.hpp"
#include "model/definition.hpp"
#include "tensor/gemm.hpp"

namespace kzero::model {

using tensor::Execution;
using tensor::Matrix;
using tensor::Vector;

/// The communicator of a tensor group, null while measuring or for a group of one, and the bytes
/// that a collective may buffer.
struct TensorLink {
  TensorRank rank;
  comm::Communicator* comm = nullptr;
  Index bucket = Index{32} << 20;
};

/// The calls that a model is made for. One that runs forward() and the losses alone takes no memory
/// for the rest.
enum class Passes { all, forward };

struct BatchShape {
  Index batch = 0;    // B sequences
  Index threads = 1;  // heads of attention that may run at once
  Passes passes = Passes::all;
  deck::AttentionKind attention = deck::AttentionKind::automatic;
};

/// The means that a model computes with beside its own memory; `gemm` is null while measuring.
struct Resources {
  BatchShape batch;
  tensor::Gemm* gemm = nullptr;
  TensorLink link{};
};

/// One micro-batch on the device: inputs and targets [N], and the inputs grouped by token.
struct Batch {
  Vector<const Token> inputs, targets;
  kernels::TokenGroups groups;
};

/// Flat units by number; an entry is null while its unit is not in memory.
template <class T>
using Units = std::span<T* const>;

/// The units of a model, which the caller runs in the order of the definition's trace, passing the
/// flat parameters and gradients. The model owns its activations. Every function but exec()
/// enqueues on exec(), allocates nothing and is collective over the tensor group.
template <class T>
class Model {
 public:
  virtual ~Model() = default;

  /// Runs unit u, any but the last.
  virtual void forward(Index u, Units<const T> parameters, const Batch& batch) = 0;

  /// Runs the last unit; sets *sum, in device memory, to the sum of the micro-batch's N losses.
  virtual void loss(Units<const T> parameters, const Batch& batch, double* sum) = 0;

  /// Runs the last unit; copies the loss of each of the micro-batch's N targets to `losses` [N] on
  /// the host, and waits for them. Added up in their order in fp64 they are the sum of loss() on
  /// hosts.
  virtual void token_losses(Units<const T> parameters, const Batch& batch,
                            std::span<float> losses) = 0;

  /// Runs the last unit forward and backward for scale * sum of losses, and sets *sum, in device
  /// memory, to that sum of losses. Gradients are written or added as `update` says.
  virtual void loss_and_gradient(Units<const T> parameters, const Batch& batch, float scale,
                                 kernels::Update update, Units<T> gradients, double* sum) = 0;

  /// Runs unit u backward, any but the last, in descending order after loss_and_gradient.
  virtual void backward(Index u, Units<const T> parameters, const Batch& batch,
                        kernels::Update update, Units<T> gradients) = 0;

  virtual const Execution& exec() const = 0;

  virtual Arithmetic arithmetic() const { return {}; }
};

}  // namespace kzero::model
