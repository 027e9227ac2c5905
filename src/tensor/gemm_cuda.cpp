// The back ends of builds for CUDA or HIP.
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

Index gemm_workspace_bytes(Index bias_bytes) { return CublasLtGemm::workspace_bytes(bias_bytes); }

std::span<const BackendEntry> backend_table() {
#ifdef KZERO_HIP
  constexpr GemmBackend library = GemmBackend::hipblaslt;
#else
  constexpr GemmBackend library = GemmBackend::cublaslt;
#endif
  static constexpr BackendEntry table[] = {{library, &make<CublasLtGemm>},
                                           {GemmBackend::reference, &make<ReferenceGemm>}};
  return table;
}

}  // namespace kzero::tensor
