// The Newton-Schulz iteration of Muon (Jordan et al., "Muon: an optimizer for hidden layers",
// github.com/KellerJordan/Muon). Five steps bring all singular values of a matrix close to 1.
//   X = u / (|u| + 1e-7); five times, with the smaller of the two products A = X X^T, A = X^T X:
//   X = a X + (b A + c A A) X, or X (b A + c A A)
// Both forms give the same result for X and its transpose, so no matrix is transposed. a, b, c are
// 3.4445, -4.7750, 2.0315 in each step (Jordan), or those of Amsel et al., "The Polar Express"
// (arXiv 2505.16932, algorithm 1), which differ from step to step.
#pragma once

#include <array>
#include <span>

#include "deck/config.hpp"
#include "kernels/exact_sum.hpp"
#include "memory/arenas.hpp"
#include "optim/matrix_shape.hpp"
#include "tensor/gemm.hpp"

namespace kzero::optim {

/// The polynomial a x + b x^3 + c x^5 of singular values that a step applies.
struct Quintic {
  float a = 0, b = 0, c = 0;
};

inline constexpr int newton_schulz_steps = 5;
using Quintics = std::array<Quintic, newton_schulz_steps>;

/// Workspace for one matrix at a time. Matrices, products and the polynomial are in the run's
/// precision. Sums of products are in fp32, and X is rounded once per step.
template <class T>
class NewtonSchulz {
 public:
  /// Allocates workspace for the largest of the shapes from the workspace category.
  NewtonSchulz(memory::Arenas& arenas, std::span<const MatrixShape> shapes,
               deck::Polynomials polynomials);

  /// The buffer that holds u when run() begins: row-major, without gaps between rows.
  T* input() const { return x_; }

  /// Runs the iteration on the matrix in input() and overwrites it. Returns the result, valid until
  /// the next call. For types of small range, u is stored multiplied by `scale`, which then also
  /// multiplies the 1e-7. Enqueued on `exec`. The bits depend only on the matrix and the shape.
  const T* run(const tensor::Execution& exec, tensor::Gemm& gemm, const MatrixShape& shape,
               double scale = 1);

 private:
  /// A matrix, and a buffer for the sums of its next step.
  struct Step {
    T* x;
    float* sum;
  };

  void normalize(const tensor::Execution& exec, const MatrixShape& shape, double scale);
  void polynomial(const tensor::Execution& exec, tensor::Gemm& gemm, const MatrixShape& shape,
                  const Quintic& quintic, const Step& step);
  void multiply(const tensor::Execution& exec, tensor::Gemm& gemm, const MatrixShape& shape,
                const Quintic& quintic, Step& step);

  const Quintics& quintics_;
  T *x_, *a_;                   // [rows, columns]; [shorter, shorter]
  float* sum_;                  // of a step, shaped like X
  float* square_;               // of A, shaped like A
  kernels::ExactSum* squares_;  // the sum of u's squares
  float* factor_;               // 1 / |u|
};

}  // namespace kzero::optim
