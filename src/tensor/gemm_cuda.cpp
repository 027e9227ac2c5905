// The back ends of CUDA builds.
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

Index gemm_workspace_bytes(Index bias_bytes) { return CublasLtGemm::workspace_bytes(bias_bytes); }

std::span<const BackendEntry> backend_table() {
  static constexpr BackendEntry table[] = {{GemmBackend::cublaslt, &make<CublasLtGemm>},
                                           {GemmBackend::reference, &make<ReferenceGemm>}};
  return table;
}

}  // namespace kzero::tensor
