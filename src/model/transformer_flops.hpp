// The arithmetic of a transformer, counted on shapes alone.
#pragma once

#include "model/definition.hpp"

namespace kzero::model {

/// Training operations per token: 6 per parameter in a GEMM, and causal attention.
double flops_per_token_of(const deck::Model& model);

/// The work per token that `recompute` adds to that.
Recomputed recomputed_per_token_of(const deck::Model& model, const deck::Recompute& recompute);

}  // namespace kzero::model
