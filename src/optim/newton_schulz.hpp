// The Newton-Schulz iteration of Muon (Jordan et al., "Muon: an optimizer for hidden layers",
// github.com/KellerJordan/Muon): five steps that bring all singular values of a matrix near 1.
//   X = u / (|u| + 1e-7); five times, with the smaller of the two products A = X X^T, A = X^T X:
//   X = a X + (b A + c A A) X, or X (b A + c A A);  a, b, c = 3.4445, -4.7750, 2.0315
// The two forms are the same for X and its transpose, so a matrix is never transposed.
#pragma once

#include <span>

#include "kernels/exact_sum.hpp"
#include "memory/arenas.hpp"
#include "tensor/gemm.hpp"

namespace kzero::optim {

struct MatrixShape {
  Index rows = 0, columns = 0;

  Index elements() const { return rows * columns; }
  Index shorter() const { return rows < columns ? rows : columns; }
};

/// Operations of the products of one iteration to its end, a multiplication and an addition each
/// counted.
double newton_schulz_operations(const MatrixShape& shape);

/// Work space for one matrix at a time. Matrices, products and the polynomial are in the run's
/// precision; sums of products are fp32, and X is rounded once a step.
template <class T>
class NewtonSchulz {
 public:
  /// Takes work space for the largest of the shapes from the workspace category.
  NewtonSchulz(memory::Arenas& arenas, std::span<const MatrixShape> shapes);

  /// The place of u when run() begins: row-major, rows without gaps.
  T* input() const { return x_; }

  /// Runs the iteration on the matrix in input(), which it overwrites; returns the result, good
  /// until the next call. `scale` is the factor that u has in memory, for types of small range: the
  /// 1e-7 has it too. Enqueued on `exec`. The bits depend on the matrix and the shape alone.
  const T* run(const tensor::Execution& exec, tensor::Gemm& gemm, const MatrixShape& shape,
               double scale = 1);

 private:
  /// A matrix, and room for the sums of its next step.
  struct Step {
    T* x;
    float* sum;
  };

  void normalize(const tensor::Execution& exec, const MatrixShape& shape, double scale);
  void polynomial(const tensor::Execution& exec, tensor::Gemm& gemm, const MatrixShape& shape,
                  const Step& step);
  void multiply(const tensor::Execution& exec, tensor::Gemm& gemm, const MatrixShape& shape,
                Step& step);

  T *x_, *a_;                   // [rows, columns], and the smaller product
  float* sum_;                  // of a step, as X
  float* square_;               // of A, as A
  kernels::ExactSum* squares_;  // the sum of u's
  float* factor_;               // 1 / |u|
};

}  // namespace kzero::optim
