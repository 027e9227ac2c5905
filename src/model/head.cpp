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

/// Computes logits [rows,V] = normal [rows,D] output^T at `memory`, in fp32.
template <class T>
StridedMatrix<float> project(const Context<T>& c, Matrix<const T> output, Matrix<const T> normal,
                             float* memory) {
  const auto logits =
      tensor::strided_matrix(memory, normal.extent(0), output.extent(0), c.chunk.stride);
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

/// The inputs and outputs of a slice of logits: rows [first, first + count).
template <class T>
struct Slice {
  StridedMatrix<float> logits;
  Vector<const Token> targets;
  Vector<float> losses, kl;

  Slice(const Context<T>& c, const StridedMatrix<float>& rows, Vector<const Token> all, Index first)
      : logits(rows),
        targets(all.data() + first, rows.extent(0)),
        losses(c.losses.data() + first, rows.extent(0)) {
    if (c.kl.size() > 0) kl = Vector<float>(c.kl.data() + first, rows.extent(0));
  }
};

/// Gathers all tensor ranks' parts of the softmaxes of a slice, [ranks * C,3]. Leaves the logits as
/// partial_softmax does.
template <class T>
kernels::PartialSoftmaxes softmaxes_of_all(const Context<T>& c, const Slice<T>& slice) {
  constexpr Index width = kernels::partial_softmax_width;
  const Index rows = slice.logits.extent(0);
  const Matrix<float> all(c.softmaxes, c.group.size() * rows, width);
  const Matrix<float> own(c.softmaxes + c.group.rank() * rows * width, rows, width);
  kernels::CrossEntropyRows::partial_softmax(*c.exec, slice.logits, c.shape.own.first_token,
                                             slice.targets, own);
  if (c.is_split()) c.group.exchange_own(*c.exec, c.softmaxes, rows * width);
  return {all, c.group.size(), c.group.rank()};
}

template <class T>
void cross_entropy(const Context<T>& c, const Slice<T>& slice) {
  if (c.is_split()) {
    kernels::cross_entropy_of_partials(*c.exec, softmaxes_of_all(c, slice), slice.targets,
                                       slice.losses);
  } else {
    kernels::CrossEntropyRows::forward(*c.exec, slice.logits, slice.targets, slice.losses);
  }
}

template <class U>
Matrix<U> first_rows(const Matrix<U>& x, Index first, Index count) {
  return PartRows{first, count, false}.of(x);
}

/// Gathers all tensor ranks' parts of the softmaxes of a slice, [2 ranks * C,3], and of KL.
template <class T>
kernels::PartialSoftmaxes softmaxes_beside_teacher(const Context<T>& c, const Slice<T>& slice,
                                                   const kernels::TeacherRows& teacher,
                                                   const kernels::DistillationRows& scratch,
                                                   float* divergence) {
  constexpr Index width = kernels::partial_softmax_width, parts = kernels::softmax_parts;
  constexpr Index of_kl = kernels::divergence_width;
  const Index rows = slice.logits.extent(0), rank = c.group.rank(), ranks = c.group.size();
  const Matrix<float> all(c.softmaxes, parts * ranks * rows, width);
  const Matrix<float> own_divergence(divergence + rank * rows * of_kl, rows, of_kl);
  kernels::take_teachers_logits(*c.exec, teacher, slice.logits, c.shape.own.first_token,
                                slice.targets, scratch,
                                first_rows(all, (parts * rank + 1) * rows, rows), own_divergence);
  kernels::CrossEntropyRows::partial_softmax(*c.exec, slice.logits, c.shape.own.first_token,
                                             Vector<const Token>(scratch.targets),
                                             first_rows(all, parts * rank * rows, rows));
  if (c.is_split()) {
    c.group.exchange_own(*c.exec, c.softmaxes, parts * rows * width);
    c.group.exchange_own(*c.exec, divergence, rows * of_kl);
  }
  return {all, parts * ranks, parts * rank};
}

/// Computes the gradient of the loss beside a teacher's tokens into dlogits, and KL.
template <class T>
void distillation_with_gradient(const Context<T>& c, const Slice<T>& slice, const HeadLoss& loss,
                                const StridedMatrix<T>& dlogits) {
  const Index rows = slice.logits.extent(0), ranks = c.group.size();
  const Index first_token = c.shape.own.first_token, top = loss.teacher.tokens.extent(1);
  const auto count = static_cast<std::size_t>(rows);
  const kernels::DistillationRows scratch{first_rows(c.distillation.logits, 0, rows),
                                          {c.distillation.targets.data(), count},
                                          {c.distillation.softmax_factors.data(), count}};
  float* const divergence =
      c.softmaxes + kernels::softmax_parts * ranks * rows * kernels::partial_softmax_width;
  const auto all = softmaxes_beside_teacher(c, slice, loss.teacher, scratch, divergence);
  kernels::divergences(*c.exec, loss.teacher, all,
                       Matrix<float>(divergence, ranks * rows, kernels::divergence_width),
                       top < c.shape.vocab, slice.targets, loss.terms, scratch, slice.kl);
  kernels::CrossEntropyRows::of_partials_with_gradient<T>(
      *c.exec, all, {slice.logits, first_token}, Vector<const Token>(scratch.targets),
      kernels::terms_of_rest(loss.teacher, loss.terms, scratch), slice.losses, dlogits);
  kernels::set_teachers_gradient<T>(*c.exec, loss.teacher, all, first_token, c.shape.own.vocab,
                                    slice.targets, loss.terms, scratch, dlogits);
}

/// Finds the slice's most probable tokens [C,k] over all tensor ranks, and its losses.
template <class T>
void top_tokens_of_all(const Context<T>& c, const Slice<T>& slice, const kernels::TopTokens& top) {
  const Index rows = slice.logits.extent(0), rank = c.group.rank(), ranks = c.group.size();
  const Index elements = rows * static_cast<Index>(top.tokens.extent(1));
  const kernels::Candidates all{first_rows(c.candidates.tokens, 0, ranks * rows),
                                first_rows(c.candidates.logits, 0, ranks * rows)};
  kernels::find_candidates(
      *c.exec, slice.logits, c.shape.own.first_token, slice.targets,
      {first_rows(all.tokens, rank * rows, rows), first_rows(all.logits, rank * rows, rows)});
  if (c.is_split()) {
    // Only bits are sent.
    static_assert(sizeof(Token) == sizeof(float));
    c.group.exchange_own(*c.exec, reinterpret_cast<float*>(all.tokens.data()), elements);
    c.group.exchange_own(*c.exec, all.logits.data(), elements);
  }
  const auto softmaxes = softmaxes_of_all(c, slice);
  kernels::cross_entropy_of_partials(*c.exec, softmaxes, slice.targets, slice.losses);
  kernels::merge_candidates(*c.exec, all, softmaxes, slice.targets, top);
}

/// Computes the gradient dlogits [rows,chunk.columns] of the logits, which it may replace.
template <class T>
void cross_entropy_with_gradient(const Context<T>& c, const Slice<T>& slice, const HeadLoss& loss,
                                 const StridedMatrix<T>& dlogits) {
  if (loss.teacher.tokens.size() > 0) {
    distillation_with_gradient(c, slice, loss, dlogits);
  } else if (c.is_split()) {
    const auto all = softmaxes_of_all(c, slice);
    kernels::CrossEntropyRows::of_partials_with_gradient<T>(
        *c.exec, all, {slice.logits, c.shape.own.first_token}, slice.targets, loss.terms,
        slice.losses, dlogits);
  } else {
    kernels::CrossEntropyRows::with_gradient<T>(*c.exec, slice.logits, slice.targets, loss.terms,
                                                slice.losses, dlogits);
  }
}

/// Computes the losses of the chunk of rows [first, first + count), and the gradients of its logits
/// [count,chunk.columns] slice by slice.
template <class T>
StridedMatrix<T> losses_with_gradient(const Context<T>& c, Matrix<const T> output,
                                      Matrix<const T> normal, Vector<const Token> targets,
                                      const HeadLoss& loss, Index first, Index count) {
  const Index stride = c.chunk.stride;
  for (Index begin = 0; begin < count; begin += c.chunk.slice) {
    const Index rows = std::min(c.chunk.slice, count - begin);
    const auto dlogits =
        tensor::strided_matrix(c.dlogits + begin * stride, rows, c.chunk.columns, stride);
    float* memory = c.logits;
    if constexpr (dtype_of<T> == Dtype::fp32) memory = dlogits.data();
    const auto logits = project<T>(c, output, first_rows(normal, first + begin, rows), memory);
    cross_entropy_with_gradient(c, Slice<T>(c, logits, targets, first + begin),
                                loss.of_rows(first + begin, rows), dlogits);
  }
  return tensor::strided_matrix(c.dlogits, count, c.chunk.columns, stride);
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

Work Head::distillation_work(const PassShape& pass) const {
  Work work(*shape_, pass);
  work.messages.gather_columns((kernels::softmax_parts - 1) * kernels::partial_softmax_width +
                               kernels::divergence_width);
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
  for (Index first = 0; first < c.rows; first += c.chunk.slice) {
    const Index count = std::min(c.chunk.slice, c.rows - first);
    const auto logits = project<T>(c, p.output, first_rows(normal, first, count), c.logits);
    cross_entropy(c, Slice<T>(c, logits, targets, first));
  }
}

HeadLoss HeadLoss::of_rows(Index first, Index count) const {
  return {terms.from_row(first),
          {first_rows(teacher.tokens, first, count), first_rows(teacher.ln_p, first, count),
           teacher.weight}};
}

template <class T>
void head_top_tokens(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                     Vector<const Token> targets, const HeadSaved<T>& saved,
                     const kernels::TopTokens& top) {
  const Matrix<const T> normal = normalise(c, p, x, saved);
  for (Index first = 0; first < c.rows; first += c.chunk.slice) {
    const Index count = std::min(c.chunk.slice, c.rows - first);
    const auto logits = project<T>(c, p.output, first_rows(normal, first, count), c.logits);
    top_tokens_of_all(c, Slice<T>(c, logits, targets, first),
                      {first_rows(top.tokens, first, count), first_rows(top.ln_p, first, count)});
  }
}

template <class T>
void head_forward_backward(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                           Vector<const Token> targets, const HeadLoss& loss,
                           const HeadSaved<T>& saved, tensor::Accumulate accumulate,
                           const HeadParams<T>& gradients, Matrix<T> dx) {
  const Matrix<const T> normal = normalise(c, p, x, saved);
  auto chunk_accumulate = c.output_gradient == nullptr ? accumulate : tensor::Accumulate::no;
  for (Index first = 0; first < c.rows; first += c.chunk.rows) {
    const Index count = std::min(c.chunk.rows, c.rows - first);
    const auto dlogits = losses_with_gradient(c, p.output, normal, targets, loss, first, count);
    project_backward_input<T>(c, p.output, dlogits, first_rows(c.hidden_grad, first, count));
    project_backward_weight<T>(c, first_rows(normal, first, count), dlogits, chunk_accumulate,
                               gradients.output);
    chunk_accumulate = tensor::Accumulate::yes;
  }
  // Rounding every chunk would lose values that are small relative to the sum.
  if (c.output_gradient != nullptr)
    store_sum<T>(c, c.output_gradient, accumulate,
                 {gradients.output.data(), gradients.output.size()});
  norm_backward<T>(c, p.norm, x, saved.statistics,
                   {dx, tensor::Accumulate::no, gradients.norm, accumulate});
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template struct HeadSaved<T>;                                                                    \
  template void head_forward<T>(const Context<T>&, const HeadParams<const T>&, Matrix<const T>,    \
                                Vector<const Token>, const HeadSaved<T>&);                         \
  template void head_forward_backward<T>(                                                          \
      const Context<T>&, const HeadParams<const T>&, Matrix<const T>, Vector<const Token>,         \
      const HeadLoss&, const HeadSaved<T>&, tensor::Accumulate, const HeadParams<T>&, Matrix<T>);  \
  template void head_top_tokens<T>(const Context<T>&, const HeadParams<const T>&, Matrix<const T>, \
                                   Vector<const Token>, const HeadSaved<T>&,                       \
                                   const kernels::TopTokens&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
