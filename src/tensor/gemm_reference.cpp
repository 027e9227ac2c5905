#include "base/error.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

namespace {

template <class T, class Out>
void multiply(const Execution& exec, const GemmProblem& p) {
  const auto* a = static_cast<const T*>(p.a.data);
  const auto* b = static_cast<const T*>(p.b.data);
  const auto* bias = static_cast<const T*>(p.bias);
  const auto* addend = static_cast<const T*>(p.addend);
  auto* c = static_cast<Out*>(p.c);
  const Index k = p.k, n = p.n, c_stride = p.c_stride;
  const bool keep = p.accumulate == Accumulate::yes;
  // Distances between neighbours along the rows of op(A), along k, and along the columns of op(B).
  const Index a_row = p.a.transpose == Transpose::no ? p.a.stride : 1;
  const Index a_k = p.a.transpose == Transpose::no ? 1 : p.a.stride;
  const Index b_k = p.b.transpose == Transpose::no ? p.b.stride : 1;
  const Index b_column = p.b.transpose == Transpose::no ? 1 : p.b.stride;
  // Neighbouring threads of a device read neighbouring columns. A thread of a host computes several
  // columns at a time, whose additions do not wait for each other.
  constexpr Index columns = runtime::kernels_on_host ? 16 : 1;
  const Range strips_of_rows(exec, 0, p.m * ceil_div(n, columns));
  Kokkos::parallel_for(
      "kzero::tensor::multiply_reference", strips_of_rows, KOKKOS_LAMBDA(Index at) {
        const Index strips = ceil_div(n, columns);  // n on a device; captured, it takes registers
        const Index i = at / strips, first = at % strips * columns;
        const Index count = columns == 1 || n - first > columns ? columns : n - first;
        float sums[columns] = {};
        for (Index l = 0; l < k; ++l) {
          const auto factor = static_cast<float>(a[i * a_row + l * a_k]);
          const T* const terms = b + l * b_k + first * b_column;
          for (Index j = 0; j < columns; ++j) {
            if (j < count) sums[j] += factor * static_cast<float>(terms[j * b_column]);
          }
        }
        for (Index j = 0; j < count; ++j) {
          float sum = sums[j];
          if (bias) sum += static_cast<float>(bias[first + j]);
          if (addend) sum += static_cast<float>(addend[i * n + first + j]);
          Out& element = c[i * c_stride + first + j];
          if (keep) sum += static_cast<float>(element);
          element = static_cast<Out>(sum);
        }
      });
}

}  // namespace

void ReferenceGemm::run(const Execution& exec, const GemmProblem& p) {
  with_type(p.in, [&](auto in) {
    using T = decltype(in);
    if (p.out == p.in) {
      multiply<T, T>(exec, p);
    } else {
      multiply<T, float>(exec, p);
    }
  });
}

}  // namespace kzero::tensor
