// GEMM back ends of builds for CUDA.
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

const Index gemm_workspace_bytes = CublasLtGemm::workspace_bytes;

std::span<const Backend> backends() {
  static constexpr Backend present[] = {Backend::cublaslt, Backend::reference};
  return present;
}

std::unique_ptr<Gemm> make_backend(Backend backend) {
  if (backend == Backend::reference) return std::make_unique<ReferenceGemm>();
  return std::make_unique<CublasLtGemm>();
}

}  // namespace kzero::tensor
