// What a model is before any memory exists: its parameters, the order of its operations, its
// arithmetic and its collectives. Planning needs no more of a model than this header, which sees
// neither MPI nor Kokkos; model.hpp has what computes.
#pragma once

#include <memory>
#include <vector>

#include "base/float16.hpp"
#include "comm/traffic.hpp"
#include "deck/config.hpp"
#include "param/spec.hpp"
#include "param/trace.hpp"

namespace kzero::memory {
class Arenas;
}

namespace kzero::model {

/// A rank's position among the `size` ranks (grid.tensor) that split each layer's work.
struct TensorRank {
  Index rank = 0;
  Index size = 1;
};

template <class T>
class Model;
struct Resources;

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

/// How a model computes beside the GEMMs, where its build has a choice: what bits depend on, and
/// why it is not what the deck prefers, if so.
struct Arithmetic {
  std::string name{}, note{};
};

/// A model on shapes alone. Nothing here needs memory, but for make() on arenas that hold some.
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
