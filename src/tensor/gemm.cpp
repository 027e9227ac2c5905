#include "tensor/gemm.hpp"

#include "base/error.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

std::unique_ptr<Gemm> make_gemm(Backend backend) {
  if (backend == Backend::reference) return std::make_unique<ReferenceGemm>();
  KZERO_REQUIRE(
      on_host, ExitCode::usage,
      "run.gemm: oneDNN and BLAS work on host memory; this build computes on {}, which has "
      "run.gemm = \"reference\"",
      Execution::name());
  if (backend == Backend::blas) return std::make_unique<BlasGemm>();
  return std::make_unique<OneDnnGemm>();
}

}  // namespace kzero::tensor
