// The library of matrix products that a deck asks for.
#pragma once

#include <memory>

#include "deck/config.hpp"
#include "tensor/gemm.hpp"

namespace kzero::train {

/// run.gemm's library. Throws Error(usage) where this build does not have it.
std::unique_ptr<tensor::Gemm> make_gemm_backend(deck::GemmBackend backend);

}  // namespace kzero::train
