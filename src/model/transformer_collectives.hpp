// The collectives of a GPT's tensor group, counted on shapes alone: what linear.cpp, norm.cpp,
// head.cpp and residual_stream.cpp will run in a micro-batch.
#pragma once

#include "model/definition.hpp"

namespace kzero::model {

/// See Definition::tensor_collectives. Counts and sizes are those of arXiv 1910.02054, section 8,
/// and with model.sequence_parallel of arXiv 2205.05198.
std::vector<TensorCollective> transformer_collectives(const deck::Model& model,
                                                      const deck::Recompute& recompute,
                                                      const TensorRank& tensor, Index sequences,
                                                      Dtype precision);

}  // namespace kzero::model
