// GEMM back ends of builds that compute on the host.
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

const Index gemm_workspace_bytes = 0;

std::span<const Backend> backends() {
  static constexpr Backend present[] = {Backend::onednn, Backend::blas, Backend::reference};
  return present;
}

std::unique_ptr<Gemm> make_backend(Backend backend) {
  if (backend == Backend::reference) return std::make_unique<ReferenceGemm>();
  if (backend == Backend::blas) return std::make_unique<BlasGemm>();
  return std::make_unique<OneDnnGemm>();
}

}  // namespace kzero::tensor
