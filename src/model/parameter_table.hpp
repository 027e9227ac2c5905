// A transformer's parameters as a table of units: embedding, one unit per block, head. Names and
// shapes are those of the family's Hugging Face files.
#pragma once

#include "model/definition.hpp"

namespace kzero::model {

/// The units in forward order: 0 is the embedding, 1 .. L are the blocks, L + 1 is the head. With
/// adapters, these are frozen, and L + 2 .. 2 L + 1 are the adapters of the blocks.
/// Matrices are initialized from a normal distribution with the deck's init_std. With init =
/// "scaled", those that write to the residual stream use init_std / sqrt(2 L). Parameters split by
/// tensor parallelism have local shapes. The others are replicated.
param::Table parameter_table(const deck::Model& model, const TensorRank& tensor = {},
                             const deck::Lora& lora = {});

}  // namespace kzero::model
