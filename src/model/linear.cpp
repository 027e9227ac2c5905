#include "model/linear.hpp"

#include "kernels/gelu.hpp"
#include "kernels/initialize.hpp"
#include "kernels/pairwise_sum.hpp"

namespace kzero::model {

using tensor::operand;
using tensor::Transpose;

namespace {

Transpose forward_transpose(const TransformerShape& shape) {
  return shape.weight_layout == WeightLayout::in_out ? Transpose::no : Transpose::yes;
}

Transpose backward_transpose(const TransformerShape& shape) {
  return shape.weight_layout == WeightLayout::in_out ? Transpose::yes : Transpose::no;
}

/// Computes dx = dy W^T in the first columns of dx.
template <class T>
tensor::GemmProblem input_gradient(const TransformerShape& shape, Matrix<const T> dy,
                                   Matrix<const T> weight, Matrix<T> dx) {
  tensor::GemmProblem p;
  const bool is_in_out = shape.weight_layout == WeightLayout::in_out;
  p.m = dx.extent(0), p.n = weight.extent(is_in_out ? 0 : 1), p.k = dy.extent(1);
  p.a = operand(dy), p.b = operand(weight, backward_transpose(shape));
  p.c = dx.data(), p.c_stride = dx.extent(1);
  p.in = p.out = dtype_of<T>;
  return p;
}

template <class T>
tensor::GemmProblem weight_gradient(const TransformerShape& shape, Matrix<const T> x,
                                    Matrix<const T> dy, const Matrix<T>& weight) {
  tensor::GemmProblem p;
  p.m = weight.extent(0), p.n = weight.extent(1), p.k = x.extent(0);
  const bool is_in_out = shape.weight_layout == WeightLayout::in_out;
  p.a = operand(is_in_out ? x : dy, Transpose::yes), p.b = operand(is_in_out ? dy : x);
  p.c = weight.data(), p.c_stride = p.n;
  p.in = p.out = dtype_of<T>;
  return p;
}

}  // namespace

template <class T>
tensor::GemmProblem forward_product(const TransformerShape& shape, Matrix<const T> x,
                                    const Linear<const T>& layer, Matrix<T> y, const T* addend) {
  tensor::GemmProblem p;
  p.m = y.extent(0), p.n = y.extent(1), p.k = x.extent(1);
  p.a = operand(x), p.b = operand(layer.weight, forward_transpose(shape));
  p.c = y.data(), p.c_stride = p.n;
  p.in = p.out = dtype_of<T>;
  p.bias = layer.bias.data();
  p.addend = addend;
  return p;
}

template <class T>
void linear_forward(const Context<T>& c, Matrix<const T> x, const Linear<const T>& layer,
                    Matrix<T> y, const T* addend) {
  c.gemm->run(*c.exec, forward_product<T>(c.shape, x, layer, y, addend));
}

template <class T>
void row_parallel_forward(const Context<T>& c, Matrix<const T> x, const Linear<const T>& layer,
                          const T* addend, Matrix<T> y) {
  if (!c.is_split()) {
    linear_forward<T>(c, x, layer, y, addend);
    return;
  }
  linear_forward<T>(c, x, {layer.weight, {}}, c.hidden_grad);
  c.sum_to_stream(c.hidden_grad, layer.bias.data(), addend, y);
}

template <class T>
void linear_backward_input(const Context<T>& c, Matrix<const T> dy, const Linear<const T>& layer,
                           Matrix<T> dx) {
  c.gemm->run(*c.exec, input_gradient<T>(c.shape, dy, layer.weight, dx));
}

template <class T>
void linear_backward_gelu(const Context<T>& c, Matrix<const T> dy, const Linear<const T>& layer,
                          Matrix<const T> hidden, Matrix<T> dhidden, tensor::Accumulate accumulate,
                          Vector<T> dbias) {
  tensor::GemmProblem p = input_gradient<T>(c.shape, dy, layer.weight, dhidden);
  const bool is_fused = c.gemm->fuses_gelu_gradient(p.in, p.n);
  if (is_fused) p.gelu_input = hidden.data();
  c.gemm->run(*c.exec, p);
  if (!is_fused) kernels::gelu_backward<T>(*c.exec, hidden, dhidden);
  if (dbias.size() > 0) kernels::sum_rows<T>(*c.exec, dhidden, accumulate, dbias, c.partial);
}

template <class T>
void linear_backward_weight(const Context<T>& c, Matrix<const T> x, Matrix<const T> dy,
                            tensor::Accumulate accumulate, const Linear<T>& gradients) {
  const Matrix<T>& dweight = gradients.weight;
  if (dweight.size() == 0) return;
  tensor::GemmProblem p = weight_gradient<T>(c.shape, x, dy, dweight);
  p.accumulate = accumulate;
  c.gemm->run(*c.exec, p);
  if (gradients.bias.size() > 0)
    kernels::sum_rows<T>(*c.exec, dy, accumulate, gradients.bias, c.partial);
}

template <class T>
void linear_backward_weight_sum(const Context<T>& c, Matrix<const T> x, Matrix<const T> dy,
                                tensor::Accumulate accumulate, const Matrix<T>& weight,
                                float* sum) {
  tensor::GemmProblem p = weight_gradient<T>(c.shape, x, dy, weight);
  p.c = sum, p.out = Dtype::fp32;
  p.accumulate = accumulate;
  c.gemm->run(*c.exec, p);
}

template <class T>
void store_sum(const Context<T>& c, const float* sum, tensor::Accumulate accumulate,
               const Vector<T>& out) {
  if (accumulate == tensor::Accumulate::no) {
    kernels::round_to<T>(*c.exec, Vector<const float>(sum, out.size()), out);
  } else {
    kernels::add_terms<T, T>(*c.exec, {.own = out.data()}, {.first = 1, .block = 2},
                             {.oldest = const_cast<float*>(sum)}, out);
  }
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template tensor::GemmProblem forward_product<T>(const TransformerShape&, Matrix<const T>,        \
                                                  const Linear<const T>&, Matrix<T>, const T*);    \
  template void linear_forward<T>(const Context<T>&, Matrix<const T>, const Linear<const T>&,      \
                                  Matrix<T>, const T*);                                            \
  template void row_parallel_forward<T>(const Context<T>&, Matrix<const T>,                        \
                                        const Linear<const T>&, const T*, Matrix<T>);              \
  template void linear_backward_input<T>(const Context<T>&, Matrix<const T>,                       \
                                         const Linear<const T>&, Matrix<T>);                       \
  template void linear_backward_gelu<T>(const Context<T>&, Matrix<const T>,                        \
                                        const Linear<const T>&, Matrix<const T>, Matrix<T>,        \
                                        tensor::Accumulate, Vector<T>);                            \
  template void linear_backward_weight<T>(const Context<T>&, Matrix<const T>, Matrix<const T>,     \
                                          tensor::Accumulate, const Linear<T>&);                   \
  template void linear_backward_weight_sum<T>(const Context<T>&, Matrix<const T>, Matrix<const T>, \
                                              tensor::Accumulate, const Matrix<T>&, float*);       \
  template void store_sum<T>(const Context<T>&, const float*, tensor::Accumulate, const Vector<T>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
