#include "train/product_library.hpp"

#include "tensor/view.hpp"

namespace kzero::train {

std::unique_ptr<tensor::Gemm> make_product_library(deck::GemmBackend backend) {
  switch (backend) {
    case deck::GemmBackend::blas:
      return tensor::make_gemm(tensor::Backend::blas);
    case deck::GemmBackend::reference:
      return tensor::make_gemm(tensor::Backend::reference);
    default:
      return tensor::make_gemm(tensor::on_host ? tensor::Backend::onednn
                                               : tensor::Backend::reference);
  }
}

}  // namespace kzero::train
