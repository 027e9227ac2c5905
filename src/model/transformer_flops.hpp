// The arithmetic of a transformer, counted on shapes alone.
#pragma once

#include "model/definition.hpp"

namespace kzero::model {

/// Training operations per token: 6 per parameter in a GEMM, and causal attention. Frozen
/// parameters count 4, since their gradients are not computed. In the first block of a frozen
/// model, what backward does not reach does not count.
double flops_per_token_of(const deck::Model& model, const deck::Lora& lora = {});

/// The work per token that `recompute` adds to that, and the products x A^T of adapters, which
/// backward computes again.
Recomputed recomputed_per_token_of(const deck::Model& model, const deck::Recompute& recompute,
                                   const deck::Lora& lora = {}, Index tile_rows = 0);

}  // namespace kzero::model
