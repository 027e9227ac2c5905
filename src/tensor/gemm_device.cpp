#include "base/error.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

std::unique_ptr<Gemm> make_gemm(Backend backend) {
  KZERO_REQUIRE(
      backend == Backend::reference, ExitCode::usage,
      "run.gemm: oneDNN and BLAS work on host memory; this build computes on {}, which has "
      "run.gemm = \"reference\"",
      Execution::name());
  return std::make_unique<ReferenceGemm>();
}

}  // namespace kzero::tensor
