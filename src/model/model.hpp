// A model in memory, computed unit by unit. This header and definition.hpp, which describes a model
// before any memory exists, are the interface between model families and training. A family
// implements both in its own files and is registered in families.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "comm/communicator.hpp"
#include "kernels/distillation.hpp"
#include "kernels/documents.hpp"
#include "kernels/embedding.hpp"
#include "kernels/preference.hpp"
#include "kernels/top_tokens.hpp"
#include "memory/arenas.hpp"
#include "model/definition.hpp"
#include "tensor/gemm.hpp"

namespace kzero::model {

using tensor::Execution;
using tensor::Matrix;
using tensor::Vector;

/// The communicator of a tensor group, which is null while measuring and for a group of one, and
/// the bytes that a collective may buffer.
struct TensorLink {
  TensorRank rank;
  comm::Communicator* comm = nullptr;
  Index bucket = Index{32} << 20;
};

/// The calls that a model supports. A `forward` model runs only forward() and the losses, and
/// allocates nothing for other calls.
enum class Passes { all, forward };

struct BatchShape {
  Index batch = 0;    // B sequences
  Index threads = 1;  // attention heads that may run at a time
  Passes passes = Passes::all;
  deck::AttentionKind attention = deck::AttentionKind::automatic;
  bool fixed_order = true;  // run.deterministic
  bool documents = false;   // whether batches may hold several documents a sequence
  Index tile_rows = 0;      // train.tile_rows
  /// The tokens of each row that a teacher gives: training learns from them, and a `forward` model
  /// finds them. 0: none.
  Index top = 0;
};

/// The communicator of a sequence group, which is null while measuring and for a group of one.
struct SequenceLink {
  SequenceRank rank;
  comm::Communicator* comm = nullptr;
};

/// The resources of a model in addition to its own memory. `gemm` is null while measuring.
struct Resources {
  BatchShape batch;
  tensor::Gemm* gemm = nullptr;
  TensorLink link{};
  SequenceLink sequence{};
};

/// The resources of a decoder.
struct DecoderResources {
  DecoderShape shape;
  tensor::Gemm* gemm = nullptr;
  TensorLink link{};
};

/// One micro-batch on the device: this rank's inputs and targets [N], the inputs of each of its
/// chunks grouped by token, and the documents of all rows of its sequences.
struct Batch {
  Vector<const Token> inputs, targets;
  std::span<const kernels::TokenGroups> groups;
  kernels::Documents documents{};
  /// The number of the first sample in the entire training, from which dropout draws its masks.
  /// Empty outside training: nothing is dropped.
  std::optional<Index> training_sample{};
  /// The factor on the gradients of losses that are means over the micro-batch, such as a router's:
  /// its share of the global batch, times the loss scale.
  float mean_scale = 0;
  /// Device memory [layers, experts], to which the routers add how often they chose each expert.
  /// Null: they do not count.
  std::uint64_t* expert_choices = nullptr;
  /// The factor on each row's loss in loss_and_gradient() [N], in device memory. Empty: all are 1.
  Vector<const float> weights{};
  /// The pairs of documents of a run that learns preferences, in device memory.
  Vector<const kernels::PairRows> pairs{};
  /// What a teacher says of the rows [N,top], in device memory. Empty: the loss is the
  /// cross-entropy.
  kernels::TeacherRows teacher{};
};

/// Flat units by number. An entry is null while its unit is not in memory.
template <class T>
using Units = std::span<T* const>;

/// The units of a model. The caller runs them in the order of the definition's trace and passes
/// flat parameters, and the gradients of each chunk after those of another. The model owns its
/// activations. Every function except exec() enqueues on exec(), allocates nothing and is
/// collective over the tensor group and the sequence group.
template <class T>
class Model {
 public:
  virtual ~Model() = default;

  /// Runs unit u, which is not the last.
  virtual void forward(Index u, Units<const T> parameters, const Batch& batch) = 0;

  /// Runs the last unit. Sets sum[c], in device memory, to the sum of the losses of the targets in
  /// chunk c of this rank.
  virtual void loss(Units<const T> parameters, const Batch& batch, double* sum) = 0;

  /// Runs the last unit. Returns the losses of the micro-batch's N rows, in device memory, until
  /// the last unit runs again. Rows without a target have 0.
  virtual Vector<const float> row_losses(Units<const T> parameters, const Batch& batch) = 0;

  /// Runs the last unit. Copies the losses of the micro-batch's N rows to `losses` [N] on the host
  /// and waits for them. Rows without a target have 0. On hosts, their fp64 sum in order equals the
  /// sum of loss().
  virtual void token_losses(Units<const T> parameters, const Batch& batch,
                            std::span<float> losses) = 0;

  /// As token_losses(). Also writes the most probable tokens of each row [N,top], in device memory.
  virtual void top_tokens(Units<const T> parameters, const Batch& batch, std::span<float> losses,
                          const kernels::TopTokens& top) = 0;

  /// Runs the last unit forward and backward for scale * sum of weight * loss of the rows, to which
  /// the definition may add terms that only training has. Sets sum[c], in device memory, to the sum
  /// of weight * loss of chunk c without these terms. With a teacher, the loss is that of
  /// kernels/distillation.hpp; sum[c] is the cross-entropy's, and those of KL follow all of them.
  /// Gradients are overwritten or added to, as `accumulate` selects.
  virtual void loss_and_gradient(Units<const T> parameters, const Batch& batch, float scale,
                                 tensor::Accumulate accumulate, Units<T> gradients,
                                 double* sum) = 0;

  /// Runs unit u, except the last, backward. Call in descending order after loss_and_gradient.
  virtual void backward(Index u, Units<const T> parameters, const Batch& batch,
                        tensor::Accumulate accumulate, Units<T> gradients) = 0;

  virtual const Execution& exec() const = 0;

  virtual Arithmetic arithmetic() const { return {}; }
};

}  // namespace kzero::model
