#include "model/head.hpp"

#include <algorithm>

#include "kernels/initialize.hpp"
#include "kernels/pairwise_sum.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "model/linear.hpp"

namespace kzero::model {

namespace {

using tensor::operand;
using tensor::StridedMatrix;
using tensor::Transpose;

// GEMMs use chunk.columns rows of the output matrix. Those from V on are what follows it in memory.
// They become columns of the logits that nothing reads, are multiplied by zeros in dnormal, and
// their gradients are not used.

/// Computes logits [rows,V] = normal [rows,D] output^T, in fp32.
template <class T>
StridedMatrix<float> project(const Context<T>& c, Matrix<const T> output, Matrix<const T> normal) {
  const auto logits =
      tensor::strided_matrix(c.logits, normal.extent(0), output.extent(0), c.chunk.stride);
  tensor::GemmProblem p;
  p.m = normal.extent(0), p.n = c.chunk.columns, p.k = output.extent(1);
  p.a = operand(normal), p.b = operand(output, Transpose::yes);
  p.c = logits.data(), p.c_stride = c.chunk.stride;
  p.in = dtype_of<T>, p.out = Dtype::fp32;
  c.gemm->run(*c.exec, p);
  return logits;
}

/// Computes dnormal [rows,D] = dlogits [rows,chunk.columns] output.
template <class T>
void project_backward_input(const Context<T>& c, Matrix<const T> output,
                            StridedMatrix<const T> dlogits, Matrix<T> dnormal) {
  tensor::GemmProblem input;
  input.m = dnormal.extent(0), input.n = dnormal.extent(1), input.k = dlogits.extent(1);
  input.a = operand(dlogits), input.b = operand(output);
  input.c = dnormal.data(), input.c_stride = input.n;
  input.in = input.out = dtype_of<T>;
  c.gemm->run(*c.exec, input);
}

/// Adds up dlogits^T normal of the chunks (=|+=) in c.output_gradient [chunk.columns,D]. Then
/// store_sum rounds it. Without that buffer the sum goes to doutput [V,D].
template <class T>
void project_backward_weight(const Context<T>& c, Matrix<const T> normal,
                             StridedMatrix<const T> dlogits, tensor::Accumulate accumulate,
                             Matrix<T> doutput) {
  if (doutput.size() == 0) return;
  const bool is_fp32 = c.output_gradient != nullptr;
  tensor::GemmProblem weight;
  weight.m = is_fp32 ? c.chunk.columns : static_cast<Index>(doutput.extent(0));
  weight.n = doutput.extent(1), weight.k = normal.extent(0);
  weight.a = operand(dlogits, Transpose::yes), weight.b = operand(normal);
  weight.c = is_fp32 ? static_cast<void*>(c.output_gradient) : doutput.data();
  weight.c_stride = weight.n;
  weight.in = dtype_of<T>, weight.out = is_fp32 ? Dtype::fp32 : dtype_of<T>;
  weight.accumulate = accumulate;
  c.gemm->run(*c.exec, weight);
}

/// The inputs and outputs of a chunk of logits: rows [first, first + count).
template <class T>
struct Chunk {
  StridedMatrix<float> logits;
  Vector<const Token> targets;
  Vector<float> losses;

  Chunk(const Context<T>& c, const StridedMatrix<float>& rows, Vector<const Token> all, Index first)
      : logits(rows),
        targets(all.data() + first, rows.extent(0)),
        losses(c.losses.data() + first, rows.extent(0)) {}
};

/// Gathers all tensor ranks' parts of the softmaxes of a chunk, [ranks * C,3]. Leaves the logits as
/// partial_softmax does.
template <class T>
kernels::PartialSoftmaxes softmaxes_of_all(const Context<T>& c, const Chunk<T>& chunk) {
  constexpr Index width = kernels::partial_softmax_width;
  const Index rows = chunk.logits.extent(0);
  const Matrix<float> all(c.softmaxes, c.group.size() * rows, width);
  const Matrix<float> own(c.softmaxes + c.group.rank() * rows * width, rows, width);
  kernels::CrossEntropyRows::partial_softmax(*c.exec, chunk.logits, c.shape.own.first_token,
                                             chunk.targets, own);
  c.group.exchange_own(*c.exec, c.softmaxes, rows * width);
  return {all, c.group.size(), c.group.rank()};
}

template <class T>
void cross_entropy(const Context<T>& c, const Chunk<T>& chunk) {
  if (c.is_split()) {
    kernels::cross_entropy_of_partials(*c.exec, softmaxes_of_all(c, chunk), chunk.targets,
                                       chunk.losses);
  } else {
    kernels::CrossEntropyRows::forward(*c.exec, chunk.logits, chunk.targets, chunk.losses);
  }
}

/// Computes the gradient of the logits [rows,chunk.columns] into c.dlogits.
template <class T>
StridedMatrix<T> cross_entropy_with_gradient(const Context<T>& c, const Chunk<T>& chunk,
                                             const kernels::LossTerms& terms) {
  const auto dlogits =
      tensor::strided_matrix(c.dlogits, chunk.logits.extent(0), c.chunk.columns, c.chunk.stride);
  if (c.is_split()) {
    const auto all = softmaxes_of_all(c, chunk);
    kernels::CrossEntropyRows::of_partials_with_gradient<T>(
        *c.exec, all, {chunk.logits, c.shape.own.first_token}, chunk.targets, terms, chunk.losses,
        dlogits);
  } else {
    kernels::CrossEntropyRows::with_gradient<T>(*c.exec, chunk.logits, chunk.targets, terms,
                                                chunk.losses, dlogits);
  }
  return dlogits;
}

/// Runs the final norm. Returns all N rows.
template <class T>
Matrix<const T> normalise(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                          const HeadSaved<T>& saved) {
  norm_forward<T>(*c.exec, c.shape, p.norm, x, saved.normal, saved.statistics);
  return c.all_rows(saved.normal);
}

}  // namespace

Head::Head(Declaration& d) : shape_(&d.shape) {
  declare_norm(d, d.family.names.final_norm);
  if (!d.shape.tied_embeddings)
    output_ = d.own.add(
        split_by_rows(std::string(d.family.names.output), d.extents.vocab, d.shape.hidden, d.std));
}

Work Head::forward_work(const PassShape& pass) const {
  Work work(*shape_, pass);
  work.operations =
      2 * static_cast<double>(shape_->hidden) * static_cast<double>(shape_->own.vocab);
  work.messages.gather_stream();
  work.messages.gather_columns(kernels::partial_softmax_width);
  return work;
}

Work Head::backward_work(const PassShape& pass) const {
  Work work(*shape_, pass);
  work.operations = forward_work(pass).operations * (shape_->is_frozen() ? 1 : 2);
  work.messages.sum_stream();
  work.messages.sum_norm_gradient();
  return work;
}

template <class T>
HeadSaved<T>::HeadSaved(memory::Arenas& arenas, const TransformerShape& s, Index batch) {
  const Index n = s.stream_rows(batch * s.own_sequence());
  normal = Matrix<T>(arenas.take<T>(memory::Category::activations, n * s.hidden), n, s.hidden);
  statistics = {arenas, s, n};
}

template <class T>
void head_forward(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                  Vector<const Token> targets, const HeadSaved<T>& saved) {
  const Matrix<const T> normal = normalise(c, p, x, saved);
  for (Index first = 0; first < c.rows; first += c.chunk.rows) {
    const Index count = std::min(c.chunk.rows, c.rows - first);
    const StridedMatrix<float> logits =
        project<T>(c, p.output, PartRows{first, count, false}.of(normal));
    cross_entropy(c, Chunk<T>(c, logits, targets, first));
  }
}

template <class T>
void head_forward_backward(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                           Vector<const Token> targets, const kernels::LossTerms& terms,
                           const HeadSaved<T>& saved, tensor::Accumulate accumulate,
                           const HeadParams<T>& gradients, Matrix<T> dx) {
  const Matrix<const T> normal = normalise(c, p, x, saved);
  auto chunk_accumulate = c.output_gradient == nullptr ? accumulate : tensor::Accumulate::no;
  for (Index first = 0; first < c.rows; first += c.chunk.rows) {
    const Index count = std::min(c.chunk.rows, c.rows - first);
    const Matrix<const T> rows = PartRows{first, count, false}.of(normal);
    const StridedMatrix<float> logits = project<T>(c, p.output, rows);
    const StridedMatrix<T> dlogits =
        cross_entropy_with_gradient(c, Chunk<T>(c, logits, targets, first), terms.from_row(first));
    project_backward_input<T>(c, p.output, dlogits,
                              PartRows{first, count, false}.of(c.hidden_grad));
    project_backward_weight<T>(c, rows, dlogits, chunk_accumulate, gradients.output);
    chunk_accumulate = tensor::Accumulate::yes;
  }
  // Rounding every chunk would lose values that are small relative to the sum.
  if (c.output_gradient != nullptr)
    store_sum<T>(c, c.output_gradient, accumulate,
                 {gradients.output.data(), gradients.output.size()});
  norm_backward<T>(c, p.norm, x, saved.statistics,
                   {dx, tensor::Accumulate::no, gradients.norm, accumulate});
}

#define KZERO_INSTANTIATE(T)                                                                    \
  template struct HeadSaved<T>;                                                                 \
  template void head_forward<T>(const Context<T>&, const HeadParams<const T>&, Matrix<const T>, \
                                Vector<const Token>, const HeadSaved<T>&);                      \
  template void head_forward_backward<T>(const Context<T>&, const HeadParams<const T>&,         \
                                         Matrix<const T>, Vector<const Token>,                  \
                                         const kernels::LossTerms&, const HeadSaved<T>&,        \
                                         tensor::Accumulate, const HeadParams<T>&, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
