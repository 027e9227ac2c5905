// The parameters of a transformer as a table of units: embedding, one unit per block, head. Names
// and shapes are those of Hugging Face's files of the family.
#pragma once

#include "model/definition.hpp"

namespace kzero::model {

/// The units in forward order: 0 is the embedding, 1 .. L the blocks, L + 1 the head. Matrices
/// start from a normal distribution of the deck's init_std; with init = "scaled" those that write
/// to the residual stream from one smaller by 1 / sqrt(2 L). Parameters that tensor parallelism
/// splits have local shapes; the others are replicated.
param::Table parameter_table(const deck::Model& model, const TensorRank& tensor = {});

}  // namespace kzero::model
