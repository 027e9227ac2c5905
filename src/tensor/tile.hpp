// Small fp32 GEMMs inside a host thread, for tiled host kernels. Not for device code.
#pragma once

#include "tensor/gemm.hpp"

namespace kzero::tensor {

/// Computes c[m,n] = alpha op(a) op(b) + beta c, row-major with strides, on the calling thread
/// alone if called inside a parallel region.
void multiply_tile(Transpose a_transpose, Transpose b_transpose, Index m, Index n, Index k,
                   float alpha, const float* a, Index a_stride, const float* b, Index b_stride,
                   float beta, float* c, Index c_stride);

}  // namespace kzero::tensor
