#include "kernels/expert_products.hpp"

#include "kernels/host/expert_products.hpp"
#include "kernels/initialize.hpp"

namespace kzero::kernels {

namespace {

using tensor::Accumulate;
using tensor::Transpose;

template <class T>
void library_products(const Execution& exec, tensor::Gemm& gemm,
                      std::span<const ExpertRows<const T>> experts, const WeightShape& shape,
                      Transpose transpose, Matrix<const T> x, Matrix<T> y) {
  for (const ExpertRows<const T>& e : experts) {
    if (e.rows == 0) continue;
    tensor::GemmProblem p;
    p.m = e.rows, p.n = shape.columns, p.k = shape.rows;
    if (transpose == Transpose::yes) std::swap(p.n, p.k);
    p.a = {&x(e.first, 0), static_cast<Index>(x.extent(1))};
    p.b = {e.weight, shape.columns, transpose};
    p.c = &y(e.first, 0), p.c_stride = static_cast<Index>(y.extent(1));
    p.in = p.out = dtype_of<T>;
    gemm.run(exec, p);
  }
}

template <class T, class Out>
void library_gradients(const Execution& exec, tensor::Gemm& gemm,
                       std::span<const ExpertRows<Out>> experts, const WeightShape& shape,
                       Matrix<const T> a, Matrix<const T> b, Accumulate accumulate) {
  for (const ExpertRows<Out>& e : experts) {
    if (e.rows == 0 && accumulate == Accumulate::yes) continue;
    if (e.rows == 0) {
      fill<Out>(exec, Vector<Out>(e.weight, shape.rows * shape.columns), 0);
      continue;
    }
    tensor::GemmProblem p;
    p.m = shape.rows, p.n = shape.columns, p.k = e.rows;
    p.a = {&a(e.first, 0), static_cast<Index>(a.extent(1)), Transpose::yes};
    p.b = {&b(e.first, 0), static_cast<Index>(b.extent(1))};
    p.c = e.weight, p.c_stride = shape.columns;
    p.in = dtype_of<T>, p.out = dtype_of<Out>;
    p.accumulate = accumulate;
    gemm.run(exec, p);
  }
}

}  // namespace

template <class T>
void expert_products(const Execution& exec, tensor::Gemm& gemm,
                     std::span<const ExpertRows<const T>> experts, const WeightShape& shape,
                     Transpose transpose, Matrix<const T> x, Matrix<T> y) {
  if constexpr (tensor::on_host) {
    host::expert_products<T>(exec, experts, shape, transpose, x, y);
  } else {
    library_products<T>(exec, gemm, experts, shape, transpose, x, y);
  }
}

template <class T, class Out>
void expert_gradients(const Execution& exec, tensor::Gemm& gemm,
                      std::span<const ExpertRows<Out>> experts, const WeightShape& shape,
                      Matrix<const T> a, Matrix<const T> b, Accumulate accumulate) {
  if constexpr (tensor::on_host) {
    host::expert_gradients<T, Out>(exec, experts, shape, a, b, accumulate);
  } else {
    library_gradients<T, Out>(exec, gemm, experts, shape, a, b, accumulate);
  }
}

// NOLINTBEGIN(bugprone-macro-parentheses): types
#define KZERO_INSTANTIATE_GRADIENTS(T, Out)                                                    \
  template void expert_gradients<T, Out>(const Execution&, tensor::Gemm&,                      \
                                         std::span<const ExpertRows<Out>>, const WeightShape&, \
                                         Matrix<const T>, Matrix<const T>, Accumulate);
// NOLINTEND(bugprone-macro-parentheses)
#define KZERO_INSTANTIATE(T)                                                                 \
  template void expert_products<T>(const Execution&, tensor::Gemm&,                          \
                                   std::span<const ExpertRows<const T>>, const WeightShape&, \
                                   Transpose, Matrix<const T>, Matrix<T>);                   \
  KZERO_INSTANTIATE_GRADIENTS(T, T)
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
KZERO_INSTANTIATE_GRADIENTS(bf16, float)
KZERO_INSTANTIATE_GRADIENTS(fp16, float)
#undef KZERO_INSTANTIATE
#undef KZERO_INSTANTIATE_GRADIENTS

}  // namespace kzero::kernels
