#include "tensor/tile.hpp"

#include <dnnl.h>

#include "base/error.hpp"

namespace kzero::tensor {

void multiply_tile(Transpose a_transpose, Transpose b_transpose, Index m, Index n, Index k,
                   float alpha, const float* a, Index a_stride, const float* b, Index b_stride,
                   float beta, float* c, Index c_stride) {
  const auto letter = [](Transpose t) { return t == Transpose::no ? 'N' : 'T'; };
  const dnnl_status_t status = dnnl_sgemm(letter(a_transpose), letter(b_transpose), m, n, k, alpha,
                                          a, a_stride, b, b_stride, beta, c, c_stride);
  KZERO_REQUIRE(status == dnnl_success, ExitCode::other,
                "oneDNN's sgemm failed with status {} for {} x {} x {}", static_cast<int>(status),
                m, n, k);
}

}  // namespace kzero::tensor
