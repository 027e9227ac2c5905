// What a pass of a unit computes and sends, on shapes alone.
#pragma once

#include <vector>

#include "model/shape.hpp"

namespace kzero::model {

/// The collectives of one pass over a micro-batch, or over a chunk of it, as this rank counts them:
/// arXiv 1910.02054, section 8, or with model.sequence_parallel arXiv 2205.05198; of sequence ranks
/// arXiv 2309.14509, section 3.2. A group of one has none.
class Messages {
 public:
  /// A tensor group's passes have `rows` rows, and a sequence group's `rows` rows of each rank.
  Messages(const TransformerShape& shape, Index rows, Dtype precision)
      : shape_(shape), rows_(rows), precision_(precision) {}

  /// A sum of the residual stream over the tensor group, to all rows or each rank's own.
  void sum_stream();
  /// A gather of all rows of the residual stream, if ranks hold their own.
  void gather_stream(comm::Purpose purpose = comm::Purpose::activations);
  /// A sum of `elements` elements of a gradient over the tensor group, or over this many copies.
  void sum_gradient(Index elements);
  void sum_gradient_of_copies(Index elements, Index copies);
  /// A sum of the gradient of a norm's parameters, which ranks with rows of their own need.
  void sum_norm_gradient();
  /// An exchange of fp32 numbers [rows,width] of each tensor rank.
  void gather_columns(Index width);
  /// The exchanges of q, k and v and of attention's result between sequence ranks, or of their
  /// gradients.
  void exchange_heads();

  /// Adds the collectives of another pass over the same rows.
  void add(const Messages& other);

  const std::vector<ModelCollective>& tensor() const { return tensor_; }
  const std::vector<ModelCollective>& sequence() const { return sequence_; }

 private:
  void add_tensor(comm::Operation operation, Index elements,
                  comm::Purpose purpose = comm::Purpose::activations);

  const TransformerShape& shape_;
  Index rows_;
  Dtype precision_;
  std::vector<ModelCollective> tensor_{}, sequence_{};
};

/// The size of the passes whose work a unit counts.
struct PassShape {
  Index rows = 0;  // of a micro-batch, or of a chunk of it
  Dtype precision = Dtype::fp32;
};

/// What one pass computes, per token of this tensor rank, and sends.
struct Work {
  double operations = 0;  // of products and attention
  double elements = 0;    // read and written by elementwise passes that recompute
  Messages messages;

  Work(const TransformerShape& shape, const PassShape& pass)
      : messages(shape, pass.rows, pass.precision) {}

  Work& operator+=(const Work& other) {
    operations += other.operations, elements += other.elements;
    messages.add(other.messages);
    return *this;
  }
};

}  // namespace kzero::model
