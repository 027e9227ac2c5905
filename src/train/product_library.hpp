// The library of matrix products that a deck asks for.
#pragma once

#include <memory>

#include "deck/config.hpp"
#include "tensor/gemm.hpp"

namespace kzero::train {

/// run.gemm's library; on a device, whose only one is the plain kernel, "onednn" means that.
std::unique_ptr<tensor::Gemm> make_product_library(deck::GemmBackend backend);

}  // namespace kzero::train
