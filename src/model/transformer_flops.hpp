// The arithmetic of a transformer, counted on shapes alone.
#pragma once

#include "model/definition.hpp"

namespace kzero::model {

/// Training arithmetic per token: 6 operations per parameter in a GEMM, and causal attention.
double flops_per_token_of(const deck::Model& model);

/// The operations that `recompute` adds to that for one token.
Recomputed recomputed_per_token_of(const deck::Model& model, const deck::Recompute& recompute);

}  // namespace kzero::model
