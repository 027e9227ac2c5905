// The back ends of builds that compute on the host.
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

Index gemm_workspace_bytes(Index /*bias_bytes*/) { return 0; }

std::unique_ptr<Gemm> make_onednn();  // gemm_onednn.cpp
std::unique_ptr<Gemm> make_blas();    // gemm_blas.cpp

std::span<const BackendEntry> backend_table() {
  static constexpr BackendEntry table[] = {{GemmBackend::onednn, &make_onednn},
                                           {GemmBackend::blas, &make_blas},
                                           {GemmBackend::reference, &make<ReferenceGemm>}};
  return table;
}

}  // namespace kzero::tensor
