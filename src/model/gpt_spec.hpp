// GPT-2 as a table of units, before any memory exists: embedding, one unit per block, head. Names
// and shapes are those of Hugging Face's GPT-2 files.
#pragma once

#include "model/definition.hpp"

namespace kzero::model {

/// The local shapes of one tensor rank (Megatron-LM, arXiv 1909.08053, section 3): complete heads,
/// columns of the feed-forward layer, rows of the vocabulary.
struct LocalShape {
  Index heads = 0;
  Index width = 0;  // of all its heads
  Index feed_forward = 0;
  Index vocab = 0;
  Index first_token = 0;
};

struct GptShape {
  Index layers = 0, hidden = 0, heads = 0, sequence = 0, vocab = 0, feed_forward = 0;
  bool tied_embeddings = true, sequence_parallel = false;
  float layernorm_eps = 1e-5F;
  TensorRank tensor;
  LocalShape own;

  explicit GptShape(const deck::Model& model, const TensorRank& tensor = {});

  /// Rows [begin, end) of the residual stream [N,D] that are local to a tensor rank in sequence
  /// parallelism (Korthikanti et al., arXiv 2205.05198), or that it keeps of a checkpoint
  /// partitioned by P_a.
  Index first_row(Index rows, Index rank) const { return part_begin(rows, tensor.size, rank); }
  Index own_rows(Index rows) const { return part_size(rows, tensor.size, tensor.rank); }
  /// The rows of the residual stream on which LayerNorm and sums work.
  Index stream_rows(Index rows) const { return sequence_parallel ? own_rows(rows) : rows; }
};

/// The units in forward order: 0 is the embedding, 1 .. L the blocks, L + 1 the head. Matrices
/// start from a normal distribution of the deck's init_std, those that write to the residual stream
/// from one smaller by 1 / sqrt(2 L). Parameters that tensor parallelism splits have local shapes;
/// the others are replicated.
param::Table gpt_table(const deck::Model& model, const TensorRank& tensor = {});

/// Training arithmetic per token: 6 operations per parameter in a GEMM, and causal attention.
double gpt_flops_per_token(const deck::Model& model);

/// The operations that `recompute` adds to that for one token.
Recomputed gpt_recomputed_per_token(const deck::Model& model, const deck::Recompute& recompute);

}  // namespace kzero::model
