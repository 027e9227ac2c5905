#include "train/gemm_backend.hpp"

namespace kzero::train {

std::unique_ptr<tensor::Gemm> make_gemm_backend(deck::GemmBackend backend) {
  switch (backend) {
    case deck::GemmBackend::automatic:
      break;
    case deck::GemmBackend::onednn:
      return tensor::make_gemm(tensor::Backend::onednn);
    case deck::GemmBackend::blas:
      return tensor::make_gemm(tensor::Backend::blas);
    case deck::GemmBackend::cublaslt:
      return tensor::make_gemm(tensor::Backend::cublaslt);
    case deck::GemmBackend::reference:
      return tensor::make_gemm(tensor::Backend::reference);
  }
  return tensor::make_gemm(tensor::backends().front());
}

}  // namespace kzero::train
