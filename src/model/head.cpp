#include "model/head.hpp"

#include <algorithm>

#include "kernels/layernorm.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "model/linear.hpp"

namespace kzero::model {

namespace {

using tensor::operand;
using tensor::Transpose;

template <class U>
Matrix<U> rows_of(const Matrix<U>& x, Index first, Index count) {
  return {x.data() + first * static_cast<Index>(x.extent(1)), static_cast<std::size_t>(count),
          x.extent(1)};
}

/// logits [rows,V] = normal [rows,D] output^T, in fp32.
template <class T>
Matrix<float> project(const Context<T>& c, Matrix<const T> output, Matrix<const T> normal) {
  const Matrix<float> logits(c.logits, normal.extent(0), output.extent(0));
  tensor::Product p;
  p.m = normal.extent(0), p.n = output.extent(0), p.k = output.extent(1);
  p.a = operand(normal), p.b = operand(output, Transpose::yes);
  p.c = logits.data(), p.c_stride = p.n;
  p.in = dtype_of<T>, p.out = Dtype::fp32;
  c.gemm->run(*c.exec, p);
  return logits;
}

/// dnormal [rows,D] = dlogits output; doutput (=|+=) dlogits^T normal.
template <class T>
void project_backward(const Context<T>& c, Matrix<const T> output, Matrix<const T> normal,
                      Matrix<const T> dlogits, kernels::Update update, Matrix<T> doutput,
                      Matrix<T> dnormal) {
  tensor::Product input;
  input.m = dnormal.extent(0), input.n = dnormal.extent(1), input.k = output.extent(0);
  input.a = operand(dlogits), input.b = operand(output);
  input.c = dnormal.data(), input.c_stride = input.n;
  input.in = input.out = dtype_of<T>;
  c.gemm->run(*c.exec, input);
  tensor::Product weight;
  weight.m = doutput.extent(0), weight.n = doutput.extent(1), weight.k = normal.extent(0);
  weight.a = operand(dlogits, Transpose::yes), weight.b = operand(normal);
  weight.c = doutput.data(), weight.c_stride = weight.n;
  weight.in = weight.out = dtype_of<T>;
  weight.accumulate = accumulate_of(update);
  c.gemm->run(*c.exec, weight);
}

}  // namespace

template <class T>
HeadSaved<T>::HeadSaved(memory::Arenas& arenas, const GptShape& s, Index batch) {
  const Index n = batch * s.sequence;
  normal = Matrix<T>(arenas.take<T>(memory::Category::activations, n * s.hidden), n, s.hidden);
  mean = Vector<float>(arenas.take<float>(memory::Category::activations, n), n);
  rstd = Vector<float>(arenas.take<float>(memory::Category::activations, n), n);
}

template <class T>
void head_forward(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                  Vector<const Token> targets, const HeadSaved<T>& saved) {
  kernels::layernorm_forward<T>(*c.exec, x, p.ln_weight, p.ln_bias, c.shape.layernorm_eps,
                                saved.normal, saved.mean, saved.rstd);
  for (Index first = 0; first < c.rows; first += c.chunk) {
    const Index count = std::min(c.chunk, c.rows - first);
    const Matrix<float> logits = project<T>(c, p.output, rows_of<T>(saved.normal, first, count));
    kernels::cross_entropy_forward(*c.exec, logits,
                                   Vector<const Token>(targets.data() + first, count),
                                   Vector<float>(c.losses.data() + first, count));
  }
}

template <class T>
void head_forward_backward(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                           Vector<const Token> targets, float scale, const HeadSaved<T>& saved,
                           kernels::Update update, const HeadParams<T>& gradients, Matrix<T> dx) {
  kernels::layernorm_forward<T>(*c.exec, x, p.ln_weight, p.ln_bias, c.shape.layernorm_eps,
                                saved.normal, saved.mean, saved.rstd);
  for (Index first = 0; first < c.rows; first += c.chunk) {
    const Index count = std::min(c.chunk, c.rows - first);
    const Matrix<T> normal = rows_of<T>(saved.normal, first, count);
    const Matrix<float> logits = project<T>(c, p.output, normal);
    const Matrix<T> dlogits(c.dlogits, logits.extent(0), logits.extent(1));
    kernels::cross_entropy_with_gradient<T>(
        *c.exec, logits, Vector<const Token>(targets.data() + first, count), scale,
        Vector<float>(c.losses.data() + first, count), dlogits);
    project_backward<T>(c, p.output, normal, dlogits, first == 0 ? update : kernels::Update::add,
                        gradients.output, rows_of<T>(c.narrow, first, count));
  }
  kernels::layernorm_backward<T>(*c.exec, x, p.ln_weight, saved.mean, saved.rstd, c.narrow,
                                 kernels::Update::overwrite, dx, update, gradients.ln_weight,
                                 gradients.ln_bias, c.partial);
}

#define KZERO_INSTANTIATE(T)                                                                      \
  template struct HeadSaved<T>;                                                                   \
  template void head_forward<T>(const Context<T>&, const HeadParams<const T>&, Matrix<const T>,   \
                                Vector<const Token>, const HeadSaved<T>&);                        \
  template void head_forward_backward<T>(                                                         \
      const Context<T>&, const HeadParams<const T>&, Matrix<const T>, Vector<const Token>, float, \
      const HeadSaved<T>&, kernels::Update, const HeadParams<T>&, Matrix<T>);
KZERO_INSTANTIATE(float)
KZERO_INSTANTIATE(bf16)
KZERO_INSTANTIATE(fp16)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
