#include "model/linear.hpp"

#include "kernels/gelu.hpp"

namespace kzero::model {

using tensor::operand;
using tensor::Transpose;

namespace {

/// Computes dx = dy W^T.
template <class T>
tensor::GemmProblem input_gradient(Matrix<const T> dy, Matrix<const T> weight, Matrix<T> dx) {
  tensor::GemmProblem p;
  p.m = dx.extent(0), p.n = dx.extent(1), p.k = dy.extent(1);
  p.a = operand(dy), p.b = operand(weight, Transpose::yes);
  p.c = dx.data(), p.c_stride = p.n;
  p.in = p.out = dtype_of<T>;
  return p;
}

}  // namespace

template <class T>
void linear_forward(const Context<T>& c, Matrix<const T> x, Matrix<const T> weight,
                    Vector<const T> bias, Matrix<T> y, const T* addend) {
  tensor::GemmProblem p;
  p.m = y.extent(0), p.n = y.extent(1), p.k = x.extent(1);
  p.a = operand(x), p.b = operand(weight);
  p.c = y.data(), p.c_stride = p.n;
  p.in = p.out = dtype_of<T>;
  p.bias = bias.data();
  p.addend = addend;
  c.gemm->run(*c.exec, p);
}

template <class T>
void row_parallel_forward(const Context<T>& c, Matrix<const T> x, Matrix<const T> weight,
                          Vector<const T> bias, const T* addend, Matrix<T> y) {
  if (!c.is_split()) {
    linear_forward<T>(c, x, weight, bias, y, addend);
    return;
  }
  linear_forward<T>(c, x, weight, {}, c.hidden_grad);
  c.sum_to_stream(c.hidden_grad, bias.data(), addend, y);
}

template <class T>
void linear_backward_input(const Context<T>& c, Matrix<const T> dy, Matrix<const T> weight,
                           Matrix<T> dx) {
  c.gemm->run(*c.exec, input_gradient<T>(dy, weight, dx));
}

template <class T>
void linear_backward_gelu(const Context<T>& c, Matrix<const T> dy, Matrix<const T> weight,
                          Matrix<const T> hidden, Matrix<T> dhidden) {
  tensor::GemmProblem p = input_gradient<T>(dy, weight, dhidden);
  if (c.gemm->fuses_gelu_gradient(p.in, p.n)) {
    p.gelu_input = hidden.data();
    c.gemm->run(*c.exec, p);
  } else {
    c.gemm->run(*c.exec, p);
    kernels::gelu_backward<T>(*c.exec, hidden, dhidden);
  }
}

template <class T>
void linear_backward_weight(const Context<T>& c, Matrix<const T> x, Matrix<const T> dy,
                            kernels::Update update, Matrix<T> dweight, Vector<T> dbias) {
  tensor::GemmProblem p;
  p.m = dweight.extent(0), p.n = dweight.extent(1), p.k = x.extent(0);
  p.a = operand(x, Transpose::yes), p.b = operand(dy);
  p.c = dweight.data(), p.c_stride = p.n;
  p.in = p.out = dtype_of<T>;
  p.accumulate = accumulate_of(update);
  c.gemm->run(*c.exec, p);
  kernels::sum_rows<T>(*c.exec, dy, update, dbias, c.partial);
}

#define KZERO_INSTANTIATE(T)                                                                   \
  template void linear_forward<T>(const Context<T>&, Matrix<const T>, Matrix<const T>,         \
                                  Vector<const T>, Matrix<T>, const T*);                       \
  template void row_parallel_forward<T>(const Context<T>&, Matrix<const T>, Matrix<const T>,   \
                                        Vector<const T>, const T*, Matrix<T>);                 \
  template void linear_backward_input<T>(const Context<T>&, Matrix<const T>, Matrix<const T>,  \
                                         Matrix<T>);                                           \
  template void linear_backward_gelu<T>(const Context<T>&, Matrix<const T>, Matrix<const T>,   \
                                        Matrix<const T>, Matrix<T>);                           \
  template void linear_backward_weight<T>(const Context<T>&, Matrix<const T>, Matrix<const T>, \
                                          kernels::Update, Matrix<T>, Vector<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
