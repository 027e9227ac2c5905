// GPT-2 as a table of units, before any memory exists: embedding, one unit a block, head. Names and
// shapes are those of Hugging Face's GPT-2 files.
#pragma once

#include "model/model.hpp"

namespace kzero::model {

/// Of what tensor parallelism cuts, one rank's part (Megatron-LM, arXiv 1909.08053, section 3):
/// whole heads, columns of the feed-forward layer, rows of the vocabulary.
struct LocalShape {
  Index heads = 0;
  Index width = 0;  // of its heads together
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

  /// Rows [begin, end) of the residual stream [N,D] that a tensor rank works on alone in sequence
  /// parallelism (Korthikanti et al., arXiv 2205.05198), or keeps of a checkpoint cut by P_a.
  Index first_row(Index rows, Index rank) const { return part_begin(rows, tensor.size, rank); }
  Index own_rows(Index rows) const { return part_size(rows, tensor.size, tensor.rank); }
  /// Of the residual stream as LayerNorm and sums see it.
  Index stream_rows(Index rows) const { return sequence_parallel ? own_rows(rows) : rows; }
};

/// Units in forward order: 0 is the embedding, 1 .. L the blocks, L + 1 the head. Matrices start
/// from a normal law of the deck's init_std, those that write to the residual stream from one 1 /
/// sqrt(2 L) narrower. What the tensor ranks share out is cut; the rest each of them holds whole.
param::Table gpt_table(const deck::Model& model, const TensorRank& tensor = {});

/// Training arithmetic of one token: 6 operations a parameter in a matrix product, and causal
/// attention.
double gpt_flops_per_token(const deck::Model& model);

/// What `recompute` adds to that for one token.
Recomputed gpt_recomputed_per_token(const deck::Model& model, const deck::Recompute& recompute);

}  // namespace kzero::model
