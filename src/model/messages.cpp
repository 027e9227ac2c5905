#include "model/messages.hpp"

#include "model/tensor_group.hpp"

namespace kzero::model {

using comm::Operation;
using comm::Purpose;

namespace {

/// Counts a collective with equal ones.
void add_to(std::vector<ModelCollective>& all, const ModelCollective& one) {
  for (ModelCollective& known : all) {
    if (known.operation != one.operation || known.purpose != one.purpose ||
        known.elements != one.elements || known.dtype != one.dtype)
      continue;
    known.count += one.count;
    return;
  }
  all.push_back(one);
}

}  // namespace

void Messages::add_tensor(Operation operation, Index elements, Purpose purpose) {
  if (shape_.tensor.size > 1) add_to(tensor_, {operation, purpose, 1, elements, precision_});
}

void Messages::sum_stream() {
  const RowTraffic stream(shape_.tensor, rows_, shape_.hidden);
  if (shape_.sequence_parallel) {
    add_tensor(Operation::reduce_scatter, stream.scattered);
  } else {
    add_tensor(Operation::all_reduce, stream.all_reduced());
  }
}

void Messages::gather_stream(Purpose purpose) {
  if (!shape_.sequence_parallel && purpose == Purpose::activations) return;
  add_tensor(Operation::all_gather, RowTraffic(shape_.tensor, rows_, shape_.hidden).gathered,
             purpose);
}

void Messages::sum_gradient(Index elements) {
  add_tensor(Operation::all_reduce, RowTraffic(shape_.tensor, elements, 1).all_reduced());
}

void Messages::sum_gradient_of_copies(Index elements, Index copies) {
  if (copies > 1) add_tensor(Operation::all_reduce, (copies - 1) * elements);
}

void Messages::sum_norm_gradient() {
  if (shape_.sequence_parallel && !shape_.is_frozen()) sum_gradient(shape_.norm_elements());
}

void Messages::gather_columns(Index width) {
  if (shape_.tensor.size == 1) return;
  add_to(tensor_, {Operation::all_gather, Purpose::activations, 1,
                   rows_ * width * (shape_.tensor.size - 1), Dtype::fp32});
}

void Messages::exchange_heads() {
  const Index ranks = shape_.sequence_rank.size;
  if (ranks == 1) return;
  // All rows of the widths of q, k, v and attention, less those that stay.
  const Index width = shape_.exchanged_width() + shape_.own.width;
  add_to(sequence_, {Operation::all_to_all, Purpose::activations, 1,
                     rows_ * width / ranks * (ranks - 1), precision_});
}

void Messages::add(const Messages& other) {
  for (const ModelCollective& one : other.tensor_) add_to(tensor_, one);
  for (const ModelCollective& one : other.sequence_) add_to(sequence_, one);
}

}  // namespace kzero::model
