// Matrix products through one call: C = op(A) op(B) [+ bias] [+ C or an addend], sums in fp32, C
// rounded once. Backends are chosen at start, never inside a step; docs/decisions.md has the
// measurements behind the default.
#pragma once

#include <memory>
#include <vector>

#include "deck/config.hpp"
#include "tensor/view.hpp"

namespace kzero::tensor {

using deck::GemmBackend;

enum class Transpose { no, yes };
enum class Accumulate { no, yes };

/// A row-major operand as it lies in memory; `stride` elements from row to row.
struct Operand {
  const void* data = nullptr;
  Index stride = 0;
  Transpose transpose = Transpose::no;
};

/// C[m,n] = op(A)[m,k] op(B)[k,n] + bias[n] + addend[m,n] + (accumulate ? C : 0), or with
/// gelu_input, C = op(A) op(B) * gelu'(gelu_input).
/// A and B have dtype `in`; C has dtype `out`: `in` or fp32; bias, addend and gelu_input have that
/// of both and need them to be the same. C overlaps no other operand.
struct GemmProblem {
  Index m = 0, n = 0, k = 0;
  Operand a, b;
  void* c = nullptr;
  Index c_stride = 0;
  Dtype in = Dtype::fp32;
  Dtype out = Dtype::fp32;
  const void* bias = nullptr;    // [n]; none: null
  const void* addend = nullptr;  // [m,n], rows n apart; none: null; not together with accumulate
  Accumulate accumulate = Accumulate::no;
  // [m,n], rows n apart: what entered the GELU (tanh form) whose gradient this is; none: null. Only
  // where the backend fuses it, and then nothing is added.
  const void* gelu_input = nullptr;
};

class Gemm {
 public:
  virtual ~Gemm() = default;

  /// Enqueues the product on `exec`.
  virtual void run(const Execution& exec, const GemmProblem& product) = 0;

  /// Whether run() takes the gelu_input of products of `type` with n columns. It depends on nothing
  /// else, so that a run which begins with the one way of rounding stays with it.
  virtual bool fuses_gelu_gradient(Dtype /*type*/, Index /*n*/) const { return false; }

  /// Scratch memory of the products from now on, for one stream at a time. None without this call.
  virtual void use_workspace(void* /*data*/, Index /*bytes*/) {}
};

/// What use_workspace should get in this build, whichever backend it is for: planned memory.
extern const Index gemm_workspace_bytes;

/// The back ends of this build, its default first.
std::vector<GemmBackend> backends();

/// Makes a back end; `automatic` stands for the default. Throws Error(usage) where this build does
/// not have it.
std::unique_ptr<Gemm> make_gemm(GemmBackend backend);

/// An operand of the whole of a contiguous view.
template <class T>
Operand operand(const Matrix<T>& view, Transpose transpose = Transpose::no) {
  return {view.data(), static_cast<Index>(view.extent(1)), transpose};
}

}  // namespace kzero::tensor
