#include "optim/newton_schulz.hpp"

#include <algorithm>
#include <utility>

#include "kernels/initialize.hpp"
#include "kernels/newton_schulz.hpp"
#include "kernels/reduction.hpp"

namespace kzero::optim {

namespace {

using tensor::Transpose;
using tensor::Vector;

constexpr int newton_schulz_steps = 5;
constexpr float of_x = 3.4445F, of_product = -4.7750F, of_square = 2.0315F;
constexpr double norm_epsilon = 1e-7;

template <class T>
Vector<T> flat(T* data, Index count) {
  return {data, static_cast<std::size_t>(count)};
}

}  // namespace

double newton_schulz_operations(const MatrixShape& shape) {
  const auto s = static_cast<double>(shape.shorter()),
             l = static_cast<double>(std::max(shape.rows, shape.columns));
  return newton_schulz_steps * (4 * s * s * l + 2 * s * s * s);
}

template <class T>
NewtonSchulz<T>::NewtonSchulz(memory::Arenas& arenas, std::span<const MatrixShape> shapes) {
  Index max_elements = 0, max_squared = 0;
  for (const MatrixShape& shape : shapes) {
    max_elements = std::max(max_elements, shape.elements());
    max_squared = std::max(max_squared, shape.shorter() * shape.shorter());
  }
  x_ = arenas.take<T>(memory::Category::workspace, max_elements);
  sum_ = arenas.take<float>(memory::Category::workspace, max_elements);
  a_ = arenas.take<T>(memory::Category::workspace, max_squared);
  square_ = arenas.take<float>(memory::Category::workspace, max_squared);
  squares_ = arenas.take<kernels::ExactSum>(memory::Category::workspace, 1);
  factor_ = arenas.take<float>(memory::Category::workspace, 1);
}

/// Sets X = u / (|u| + 1e-7). The squares are summed in fp32 in blocks of 64. The blocks' sums are
/// added without rounding.
template <class T>
void NewtonSchulz<T>::normalize(const tensor::Execution& exec, const MatrixShape& shape,
                                double scale) {
  kernels::sum_of_squares<T>(exec, flat<const T>(x_, shape.elements()), 0, squares_);
  kernels::reciprocal_norm(exec, squares_, scale * norm_epsilon, factor_);
  kernels::scale<T>(exec, factor_, flat(x_, shape.elements()));
}

/// Sets A = b A + c A A, where A is the smaller of X X^T and X^T X.
template <class T>
void NewtonSchulz<T>::polynomial(const tensor::Execution& exec, tensor::Gemm& gemm,
                                 const MatrixShape& shape, const Step& step) {
  const Index s = shape.shorter();
  const bool is_wide = s == shape.rows;
  tensor::GemmProblem p;
  p.m = p.n = s, p.k = shape.elements() / s;
  p.a = {step.x, shape.columns, is_wide ? Transpose::no : Transpose::yes};
  p.b = {step.x, shape.columns, is_wide ? Transpose::yes : Transpose::no};
  p.c = a_, p.c_stride = s;
  p.in = p.out = dtype_of<T>;
  gemm.run(exec, p);
  p.k = s;
  p.a = p.b = {a_, s, Transpose::no};
  p.c = square_;
  p.out = Dtype::fp32;
  gemm.run(exec, p);
  kernels::combine<T>(exec, of_product, of_square, flat<const float>(square_, s * s),
                      flat(a_, s * s));
}

/// Sets X = a X + A X, or a X + X A.
template <class T>
void NewtonSchulz<T>::multiply(const tensor::Execution& exec, tensor::Gemm& gemm,
                               const MatrixShape& shape, Step& step) {
  const Index s = shape.shorter(), elements = shape.elements();
  kernels::begin_sum<T>(exec, of_x, flat<const T>(step.x, elements), flat(step.sum, elements));
  const tensor::Operand x{step.x, shape.columns, Transpose::no}, square{a_, s, Transpose::no};
  const bool is_wide = s == shape.rows;
  tensor::GemmProblem p;
  p.m = shape.rows, p.n = shape.columns, p.k = s;
  p.a = is_wide ? square : x, p.b = is_wide ? x : square;
  p.c = step.sum, p.c_stride = shape.columns;
  p.in = dtype_of<T>, p.out = Dtype::fp32;
  p.accumulate = tensor::Accumulate::yes;
  gemm.run(exec, p);
  if constexpr (dtype_of<T> == Dtype::fp32) {
    std::swap(step.x, step.sum);
  } else {
    kernels::round_to<T>(exec, flat<const float>(step.sum, elements), flat(step.x, elements));
  }
}

template <class T>
const T* NewtonSchulz<T>::run(const tensor::Execution& exec, tensor::Gemm& gemm,
                              const MatrixShape& shape, double scale) {
  normalize(exec, shape, scale);
  // In fp32 the two buffers swap roles within a run. Every run begins with the same roles, because
  // a library may select its code by operand alignment.
  Step step{x_, sum_};
  for (int i = 0; i < newton_schulz_steps; ++i) {
    polynomial(exec, gemm, shape, step);
    multiply(exec, gemm, shape, step);
  }
  return step.x;
}

#define KZERO_INSTANTIATE(T) template class NewtonSchulz<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::optim
