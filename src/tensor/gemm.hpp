// Matrix products through one call: C = op(A) op(B) [+ bias] [+ C or an addend], sums in fp32, C
// rounded once. Backends are chosen at start, never inside a step; docs/decisions.md has the
// measurements behind the default.
#pragma once

#include <memory>

#include "tensor/view.hpp"

namespace kzero::tensor {

enum class Transpose { no, yes };
enum class Accumulate { no, yes };
enum class Backend { onednn, blas, reference };

/// A row-major operand as it lies in memory; `stride` elements from row to row.
struct Operand {
  const void* data = nullptr;
  Index stride = 0;
  Transpose transpose = Transpose::no;
};

/// C[m,n] = op(A)[m,k] op(B)[k,n] + bias[n] + addend[m,n] + (accumulate ? C : 0).
/// A, B, bias and addend have dtype `in`; C has dtype `out`: `in` or fp32. C overlaps no other
/// operand.
struct Product {
  Index m = 0, n = 0, k = 0;
  Operand a, b;
  void* c = nullptr;
  Index c_stride = 0;
  Dtype in = Dtype::fp32;
  Dtype out = Dtype::fp32;
  const void* bias = nullptr;    // [n]; none: null
  const void* addend = nullptr;  // [m,n], rows n apart; none: null; not together with accumulate
  Accumulate accumulate = Accumulate::no;
};

class Gemm {
 public:
  virtual ~Gemm() = default;

  /// Enqueues the product on `exec`.
  virtual void run(const Execution& exec, const Product& product) = 0;
};

/// Throws Error(usage) where the backend cannot reach this build's memory.
std::unique_ptr<Gemm> make_gemm(Backend backend);

/// An operand of the whole of a contiguous view.
template <class T>
Operand operand(const Matrix<T>& view, Transpose transpose = Transpose::no) {
  return {view.data(), static_cast<Index>(view.extent(1)), transpose};
}

}  // namespace kzero::tensor
