// Small fp32 products inside a host thread: what tiled host kernels are made of. Not for device
// code.
#pragma once

#include "tensor/gemm.hpp"

namespace kzero::tensor {

/// c[m,n] = alpha op(a) op(b) + beta c, row-major with strides, on the calling thread alone when
/// called inside a parallel region.
void multiply_tile(Transpose a_transpose, Transpose b_transpose, Index m, Index n, Index k,
                   float alpha, const float* a, Index a_stride, const float* b, Index b_stride,
                   float beta, float* c, Index c_stride);

}  // namespace kzero::tensor
