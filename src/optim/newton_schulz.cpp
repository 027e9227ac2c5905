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

constexpr double norm_epsilon = 1e-7;

/// Returns the polynomial p(x / by).
constexpr Quintic stretched(double a, double b, double c, double by) {
  return {static_cast<float>(a / by), static_cast<float>(b / (by * by * by)),
          static_cast<float>(c / (by * by * by * by * by))};
}

/// The paper divides X by 1.01 |u|, and each polynomial's argument by 1.01, so that rounding cannot
/// take a singular value out of the interval for which the next polynomial was chosen. Here the
/// first polynomial does both.
constexpr double margin = 1.01;

constexpr Quintic jordan{3.4445F, -4.7750F, 2.0315F};
constexpr Quintics by_jordan{jordan, jordan, jordan, jordan, jordan};
constexpr Quintics polar_express{
    stretched(8.28721201814563, -23.595886519098837, 17.300387312530933, margin* margin),
    stretched(4.107059111542203, -2.9478499167379106, 0.5448431082926601, margin),
    stretched(3.9486908534822946, -2.908902115962949, 0.5518191394370137, margin),
    stretched(3.3184196573706015, -2.488488024314874, 0.51004894012372, margin),
    stretched(2.300652019954817, -1.6689039845747493, 0.4188073119525673, margin)};

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
NewtonSchulz<T>::NewtonSchulz(memory::Arenas& arenas, std::span<const MatrixShape> shapes,
                              deck::Polynomials polynomials)
    : quintics_(polynomials == deck::Polynomials::polar_express ? polar_express : by_jordan) {
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
                                 const MatrixShape& shape, const Quintic& quintic,
                                 const Step& step) {
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
  kernels::combine<T>(exec, quintic.b, quintic.c, flat<const float>(square_, s * s),
                      flat(a_, s * s));
}

/// Sets X = a X + A X, or a X + X A.
template <class T>
void NewtonSchulz<T>::multiply(const tensor::Execution& exec, tensor::Gemm& gemm,
                               const MatrixShape& shape, const Quintic& quintic, Step& step) {
  const Index s = shape.shorter(), elements = shape.elements();
  kernels::begin_sum<T>(exec, quintic.a, flat<const T>(step.x, elements), flat(step.sum, elements));
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
  for (const Quintic& quintic : quintics_) {
    polynomial(exec, gemm, shape, quintic, step);
    multiply(exec, gemm, shape, quintic, step);
  }
  return step.x;
}

#define KZERO_INSTANTIATE(T) template class NewtonSchulz<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::optim
