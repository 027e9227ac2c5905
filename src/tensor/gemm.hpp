// Matrix products (GEMM) through one call: C = op(A) op(B) [+ bias] [+ C or an addend]. Sums are in
// fp32, and C is rounded once. The back end is chosen at start, never inside a step.
// docs/decisions.md has the measurements behind the default.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "deck/config.hpp"
#include "tensor/algorithms.hpp"
#include "tensor/view.hpp"

namespace kzero::tensor {

using deck::GemmBackend;

enum class Transpose { no, yes };

/// A row-major operand in memory, with `stride` elements from row to row.
struct Operand {
  const void* data = nullptr;
  Index stride = 0;
  Transpose transpose = Transpose::no;
};

/// One GEMM: C[m,n] = op(A)[m,k] op(B)[k,n] + bias[n] + addend[m,n] + (accumulate ? C : 0), or,
/// with gelu_input, C = op(A) op(B) * gelu'(gelu_input). A and B have dtype `in`. C has dtype
/// `out`, which is `in` or fp32. Every other operand requires `in` and `out` to be equal, and has
/// that dtype. C overlaps no other operand.
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
  // [m,n], rows n apart: the input of the GELU (tanh form) whose gradient is computed; none: null.
  // Only for back ends that fuse this gradient; then bias, addend, accumulate and a transposed A
  // are not allowed.
  const void* gelu_input = nullptr;
};

class Gemm {
 public:
  virtual ~Gemm() = default;

  /// Enqueues the GEMM on `exec`.
  virtual void run(const Execution& exec, const GemmProblem& product) = 0;

  /// The library, its version and instructions. Together with the shapes, they determine the
  /// rounding of run().
  virtual std::string arithmetic() const = 0;

  /// Returns whether run() accepts gelu_input for GEMMs of `type` with n columns. The answer
  /// depends on nothing else, so that a run rounds in the same way from beginning to end.
  virtual bool fuses_gelu_gradient(Dtype /*type*/, Index /*n*/) const { return false; }

  /// Sets the scratch memory of later GEMMs, for one stream at a time. Without this call there is
  /// none.
  virtual void use_workspace(void* /*data*/, Index /*bytes*/) {}

  /// Null if its library does not let kzero choose algorithms.
  virtual AlgorithmChoice* algorithms() { return nullptr; }
};

/// The bytes to pass to use_workspace in this build, for any back end and biases of at most
/// `bias_bytes`: part of the memory plan.
Index gemm_workspace_bytes(Index bias_bytes);

/// The back ends of this build, its default first.
std::vector<GemmBackend> backends();

/// Makes a back end; `automatic` means the default. Throws Error(usage) if this build does not have
/// it.
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
