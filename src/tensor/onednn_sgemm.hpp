// fp32 products by oneDNN, whose bits do not depend on the number of threads.
#pragma once

#include "tensor/gemm.hpp"

namespace kzero::tensor {

/// Returns whether onednn_sgemm() reads the operand slowly. Copying blocks of such an operand costs
/// less.
bool packs_slowly(const Operand& x);

/// Computes c[m,n] = op(a) op(b) + beta c in fp32. c has c_stride elements from row to row. Throws
/// Error(other) if the library fails.
void onednn_sgemm(Index m, Index n, Index k, const Operand& a, const Operand& b, float beta,
                  float* c, Index c_stride);

}  // namespace kzero::tensor
