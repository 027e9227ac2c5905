// The seam between a model and everything that trains, plans or stores one. A Definition says what
// a model is before any memory exists; a Model computes it unit by unit. Other folders include this
// header alone: a family implements both classes in files of its own and is registered in
// families.cpp.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.hpp"
#include "deck/config.hpp"
#include "kernels/embedding.hpp"
#include "memory/arenas.hpp"
#include "param/spec.hpp"
#include "param/trace.hpp"
#include "tensor/gemm.hpp"

namespace kzero::model {

using tensor::Execution;
using tensor::Matrix;
using tensor::Vector;

/// A rank's position among the `size` ranks (grid.tensor) that split each layer's work.
struct TensorRank {
  Index rank = 0;
  Index size = 1;
};

/// The communicator of a tensor group, null while measuring or for a group of one, and the bytes
/// that a collective may buffer.
struct TensorLink {
  TensorRank rank;
  comm::Communicator* comm = nullptr;
  Index bucket = Index{32} << 20;
};

struct BatchShape {
  Index batch = 0;    // B sequences
  Index threads = 1;  // heads of attention that may run at once
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

  /// Runs the last unit; returns the sum of the micro-batch's N losses, for which it waits.
  virtual double loss(Units<const T> parameters, const Batch& batch) = 0;

  /// Runs the last unit forward and backward for scale * sum of losses, and returns that sum of
  /// losses, for which it waits. Gradients are written or added as `update` says.
  virtual double loss_and_gradient(Units<const T> parameters, const Batch& batch, float scale,
                                   kernels::Update update, Units<T> gradients) = 0;

  /// Runs unit u backward, any but the last, in descending order after loss_and_gradient.
  virtual void backward(Index u, Units<const T> parameters, const Batch& batch,
                        kernels::Update update, Units<T> gradients) = 0;

  virtual const Execution& exec() const = 0;
};

/// The work that activation checkpointing adds to the training arithmetic of one token.
struct Recomputed {
  double operations = 0;  // of GEMMs and attention, with the elementwise passes between them
  double elements = 0;    // read and written by passes alone, and by copies to the host and back
};

/// A collective that the tensor group runs `count` times in a micro-batch of training; each time
/// this rank sends `elements` elements of `dtype`.
struct TensorCollective {
  comm::Operation operation = comm::Operation::all_reduce;
  comm::Purpose purpose = comm::Purpose::activations;
  Index count = 0;
  Index elements = 0;
  Dtype dtype = Dtype::fp32;
};

class Definition;

/// A unit whose speed stands for that of the whole model, in a model small enough to be measured
/// before a run.
struct Benchmark {
  std::shared_ptr<const Definition> model;
  Index unit = 0;              // to run forward and backward; not the last
  double flops_per_token = 0;  // of that unit, as Definition::flops_per_token counts
};

/// A model on shapes alone. Nothing here needs memory, MPI or Kokkos, but for make() on arenas that
/// hold memory.
class Definition {
 public:
  virtual ~Definition() = default;

  /// All units as this tensor rank holds them, in forward order; the last has the loss.
  virtual param::Table table(const TensorRank& tensor) const = 0;

  /// A micro-batch of training, and one of validation, which has no gradients.
  virtual param::Trace training_trace() const = 0;
  virtual param::Trace validation_trace() const = 0;

  /// Training arithmetic of one token, forward and backward, without recomputation.
  virtual double flops_per_token() const = 0;
  virtual Recomputed recomputed_per_token() const = 0;

  /// The collectives of a micro-batch of `sequences` sequences; none for a group of one.
  virtual std::vector<TensorCollective> tensor_collectives(const TensorRank& tensor,
                                                           Index sequences,
                                                           Dtype precision) const = 0;

  /// Returns the benchmark for sequences of `sequence` tokens. The layers of a wide model are
  /// narrowed to about `most_width` columns, at which GEMMs have their full speed.
  virtual Benchmark benchmark(Index most_width, Index sequence) const = 0;

  /// Takes the model's activations, workspace and buckets from the arenas, measuring ones too.
  template <class T>
  std::unique_ptr<Model<T>> make(memory::Arenas& arenas, const Resources& resources) const {
    return make_as(T{}, arenas, resources);
  }

 private:
  virtual std::unique_ptr<Model<float>> make_as(float type, memory::Arenas& arenas,
                                                const Resources& resources) const = 0;
  virtual std::unique_ptr<Model<bf16>> make_as(bf16 type, memory::Arenas& arenas,
                                               const Resources& resources) const = 0;
  virtual std::unique_ptr<Model<fp16>> make_as(fp16 type, memory::Arenas& arenas,
                                               const Resources& resources) const = 0;
};

/// A model family: defines the model of a resolved deck.
using Family = std::shared_ptr<const Definition> (*)(const deck::Config& config);

/// The definition by the family that the deck asks for.
std::shared_ptr<const Definition> define(const deck::Config& config);

}  // namespace kzero::model
