// A model before any memory exists: its parameters, operation order, arithmetic and collectives.
// Planning needs only this header, which includes neither MPI nor Kokkos. model.hpp declares the
// model that computes.
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

/// A rank's position among the `size` ranks (grid.tensor) that split each layer.
struct TensorRank {
  Index rank = 0;
  Index size = 1;
};

/// A rank's position among the `size` ranks (grid.sequence) that share each sequence, and the
/// number of chunks (train.sequence_chunks) that they compute.
struct SequenceRank {
  Index rank = 0;
  Index size = 1;
  Index chunks = 1;  // of a sequence, a multiple of size

  Index own_chunks() const { return chunks / size; }
};

/// The sizes for which a decoder allocates memory.
struct DecoderShape {
  Index sequences = 0;  // in the cache at a time
  Index positions = 0;  // per sequence, at most model.sequence
  Index rows = 0;       // per pass over a prompt
};

template <class T>
class Model;
struct Resources;

/// The work per token that activation checkpointing adds to training.
struct Recomputed {
  double operations = 0;  // of GEMMs and attention, with the elementwise passes between them
  double elements = 0;    // read and written by elementwise passes
  double offloaded = 0;   // elements read and written by copies to and from the host
};

/// A collective that the tensor group or the sequence group runs `count` times per training
/// micro-batch. Each time this rank sends `elements` elements of `dtype`.
struct ModelCollective {
  comm::Operation operation = comm::Operation::all_reduce;
  comm::Purpose purpose = comm::Purpose::activations;
  Index count = 0;
  Index elements = 0;
  Dtype dtype = Dtype::fp32;
};

class Definition;

/// A unit whose speed represents the full model. Its model is small enough to be measured before a
/// run.
struct Benchmark {
  std::shared_ptr<const Definition> model;
  Index unit = 0;              // unit to run forward and backward; not the last
  double flops_per_token = 0;  // of that unit, counted as flops_per_token does
};

/// The arithmetic outside the GEMMs, if the build offers a choice. The bits of results depend on
/// `name`. `note` explains why it is not what the deck prefers, if so.
struct Arithmetic {
  std::string name{}, note{};
};

/// A model on shapes alone. Only make() needs memory.
class Definition {
 public:
  virtual ~Definition() = default;

  /// All units as held by this tensor rank, in forward order. The last one computes the loss,
  /// except that units of adapters come after it.
  virtual param::Table table(const TensorRank& tensor) const = 0;

  /// The traces of a micro-batch of training, and of validation, which has no gradients.
  virtual param::Trace training_trace() const = 0;
  virtual param::Trace validation_trace() const = 0;

  /// The tensor group's collectives of a micro-batch of `rows` rows, or of a chunk of it. Empty for
  /// a group of one.
  virtual std::vector<ModelCollective> tensor_collectives(const TensorRank& tensor, Index rows,
                                                          Dtype precision) const = 0;

  /// The sequence group's collectives of a micro-batch in which each rank has `rows` rows. Empty
  /// for a group of one.
  virtual std::vector<ModelCollective> sequence_collectives(const TensorRank& /*tensor*/,
                                                            const SequenceRank& /*sequence*/,
                                                            Index /*rows*/,
                                                            Dtype /*precision*/) const {
    return {};
  }

  /// Returns the benchmark for sequences of `sequence` tokens. Narrows wide layers to about
  /// `max_width` columns, at which GEMMs reach full speed.
  virtual Benchmark benchmark(Index max_width, Index sequence) const = 0;

  /// Allocates the model's activations, workspace and buckets from the arenas. Accepts measuring
  /// arenas.
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

/// Training operations per token, forward and backward, without recomputation: 6 per parameter in a
/// product, and causal attention. Frozen parameters count 4, since their gradients are not
/// computed. What backward does not reach does not count. `training` is a Definition's training
/// trace.
double flops_per_token(const param::Trace& training);
Recomputed recomputed_per_token(const param::Trace& training);

/// A model family: a function that defines the model of a resolved deck.
using Family = std::shared_ptr<const Definition> (*)(const deck::Config& config);

/// Defines the model with the family that the deck names.
std::shared_ptr<const Definition> define(const deck::Config& config);

/// The names of all parameters of that model, in its order.
std::vector<std::string> parameter_names(const deck::Config& config);

}  // namespace kzero::model
