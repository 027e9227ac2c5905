// Matrix products (GEMM) through one call: C = op(A) op(B) [+ bias] [+ C or an addend], sums in
// fp32, C rounded once. The back end is chosen at start, never inside a step; docs/decisions.md has
// the measurements behind the default.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deck/config.hpp"
#include "tensor/strided_matrix.hpp"

namespace kzero::tensor {

using deck::GemmBackend;

enum class Transpose { no, yes };
enum class Accumulate { no, yes };

/// A row-major operand in memory; `stride` elements from row to row.
struct Operand {
  const void* data = nullptr;
  Index stride = 0;
  Transpose transpose = Transpose::no;
};

/// One GEMM: C[m,n] = op(A)[m,k] op(B)[k,n] + bias[n] + addend[m,n] + (accumulate ? C : 0), or with
/// gelu_input, C = op(A) op(B) * gelu'(gelu_input). A and B have dtype `in`; C has dtype `out`:
/// `in` or fp32; all else requires both dtypes to be equal and has the same one.
/// C overlaps no other operand.
struct GemmProblem {
  Index m = 0, n = 0, k = 0;
  Operand a, b;
  void* c = nullptr;
  Index c_stride = 0;
  Dtype in = Dtype::fp32;
  Dtype out = Dtype::fp32;
  const void* bias = nullptr;    // [n]; none: null
  const void* addend = nullptr;  // [m,n], rows n apart; none: null; excludes accumulate
  Accumulate accumulate = Accumulate::no;
  // [m,n], rows n apart: the input of the GELU (tanh form) whose gradient this is; none: null. Only
  // for back ends that fuse it, and then nothing is added.
  const void* gelu_input = nullptr;
  // [n], with gelu_input alone: overwritten by the sum of C's rows, summed in fp32; none: null.
  void* bias_gradient = nullptr;
};

class Gemm {
 public:
  virtual ~Gemm() = default;

  /// Enqueues the GEMM on `exec`.
  virtual void run(const Execution& exec, const GemmProblem& product) = 0;

  /// The library, its version and instructions: what the rounding of run() depends on beside the
  /// shapes.
  virtual std::string arithmetic() const = 0;

  /// Returns whether run() accepts the gelu_input and the bias_gradient of GEMMs of `type` with n
  /// columns. The answer depends on nothing else, so a run keeps one way of rounding from beginning
  /// to end.
  virtual bool fuses_gelu_gradient(Dtype /*type*/, Index /*n*/) const { return false; }

  /// Sets the scratch memory of later GEMMs, for one stream at a time. Without this call there is
  /// none.
  virtual void use_workspace(void* /*data*/, Index /*bytes*/) {}
};

/// The bytes that use_workspace should get in this build, whatever the back end: planned memory.
extern const Index gemm_workspace_bytes;

/// The back ends of this build, its default first.
std::vector<GemmBackend> backends();

/// Makes a back end; `automatic` stands for the default. Throws Error(usage) where this build does
/// not have it.
std::unique_ptr<Gemm> make_gemm(GemmBackend backend);

/// The operand for a full contiguous view.
template <class T>
Operand operand(const Matrix<T>& view, Transpose transpose = Transpose::no) {
  return {view.data(), static_cast<Index>(view.extent(1)), transpose};
}

/// The operand for a full view with its stride.
template <class T>
Operand operand(const StridedMatrix<T>& view, Transpose transpose = Transpose::no) {
  return {view.data(), static_cast<Index>(view.stride(0)), transpose};
}

}  // namespace kzero::tensor
