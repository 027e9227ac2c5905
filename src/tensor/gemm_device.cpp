// The back ends of builds for devices for which kzero has no GEMM library.
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

Index gemm_workspace_bytes(Index /*bias_bytes*/) { return 0; }

std::span<const BackendEntry> backend_table() {
  static constexpr BackendEntry table[] = {{GemmBackend::reference, &make<ReferenceGemm>}};
  return table;
}

}  // namespace kzero::tensor
