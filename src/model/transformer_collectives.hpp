// The tensor-group collectives of a transformer's micro-batch, counted on shapes alone. linear.cpp,
// adapters.cpp, norm.cpp, head.cpp and residual_stream.cpp run them.
#pragma once

#include "model/definition.hpp"

namespace kzero::model {

/// See Definition::tensor_collectives. Counts and sizes follow arXiv 1910.02054, section 8, or with
/// model.sequence_parallel arXiv 2205.05198.
std::vector<ModelCollective> transformer_collectives(const deck::Model& model,
                                                     const deck::Recompute& recompute,
                                                     const TensorRank& tensor, Index rows,
                                                     Dtype precision, const deck::Lora& lora = {});

}  // namespace kzero::model
