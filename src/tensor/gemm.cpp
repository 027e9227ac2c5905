#include "tensor/gemm.hpp"

#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

// For builds that compute on the host; gemm_device.cpp is for the others.
std::unique_ptr<Gemm> make_gemm(Backend backend) {
  if (backend == Backend::reference) return std::make_unique<ReferenceGemm>();
  if (backend == Backend::blas) return std::make_unique<BlasGemm>();
  return std::make_unique<OneDnnGemm>();
}

}  // namespace kzero::tensor
