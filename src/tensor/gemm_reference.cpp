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
  Kokkos::parallel_for(
      "kzero::tensor::multiply_reference", Range(exec, 0, p.m * n), KOKKOS_LAMBDA(Index at) {
        const Index i = at / n, j = at % n;
        float sum = 0;
        for (Index l = 0; l < k; ++l) {
          sum += static_cast<float>(a[i * a_row + l * a_k]) *
                 static_cast<float>(b[l * b_k + j * b_column]);
        }
        if (bias) sum += static_cast<float>(bias[j]);
        if (addend) sum += static_cast<float>(addend[i * n + j]);
        if (keep) sum += static_cast<float>(c[i * c_stride + j]);
        c[i * c_stride + j] = static_cast<Out>(sum);
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
