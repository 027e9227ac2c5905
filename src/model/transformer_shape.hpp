// The shapes of a decoder-only transformer, before any memory exists: GPT-2's, or the Llama
// family's, whose one block has flags.
#pragma once

#include "model/definition.hpp"

namespace kzero::model {

/// The local shapes of one tensor rank (Megatron-LM, arXiv 1909.08053, section 3): complete heads,
/// columns of the feed-forward layer, rows of the vocabulary. Where there are fewer heads of keys
/// and values than ranks, neighbouring ranks have copies of one.
struct LocalShape {
  Index heads = 0;
  Index width = 0;  // of all its query heads
  Index kv_heads = 0;
  Index kv_width = 0;
  Index kv_copies = 1;  // ranks that hold the same heads of keys and values
  Index feed_forward = 0;
  Index vocab = 0;
  Index first_token = 0;

  Index qkv_width() const { return width + 2 * kv_width; }
};

/// The order of a linear layer's weight in memory and in files.
enum class WeightLayout { in_out, out_in };

struct TransformerShape {
  deck::ModelFamily family = deck::ModelFamily::gpt2;
  Index layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, sequence = 0, vocab = 0,
        feed_forward = 0;
  bool qkv_bias = true, qk_norm = false;
  bool tied_embeddings = true, sequence_parallel = false;
  float norm_eps = 1e-5F;
  TensorRank tensor;
  LocalShape own;

  explicit TransformerShape(const deck::Model& model, const TensorRank& tensor = {});

  /// RMSNorm, rotary positions, SwiGLU and no biases but qkv_bias; else LayerNorm, learned
  /// positions, GELU and biases.
  bool is_llama() const { return family == deck::ModelFamily::llama; }
  WeightLayout weight_layout() const {
    return is_llama() ? WeightLayout::out_in : WeightLayout::in_out;
  }
  bool has_biases() const { return !is_llama(); }

  Index width() const { return heads * head_dim; }
  Index kv_width() const { return kv_heads * head_dim; }
  /// Parameters of a norm: a weight, and LayerNorm's bias.
  Index norm_elements() const { return is_llama() ? hidden : 2 * hidden; }
  /// Local parameters of the projections to queries, keys and values.
  Index qkv_elements() const { return own.qkv_width() * (hidden + (qkv_bias ? 1 : 0)); }
  /// Local columns of the feed-forward layer's first GEMM: with SwiGLU those of gate and up.
  Index hidden_columns() const { return is_llama() ? 2 * own.feed_forward : own.feed_forward; }

  /// Rows [begin, end) of the residual stream [N,D] that are local to a tensor rank in sequence
  /// parallelism (Korthikanti et al., arXiv 2205.05198), or that it keeps of a checkpoint
  /// partitioned by P_a.
  Index first_row(Index rows, Index rank) const { return part_begin(rows, tensor.size, rank); }
  Index own_rows(Index rows) const { return part_size(rows, tensor.size, tensor.rank); }
  /// The rows of the residual stream on which norms and sums work.
  Index stream_rows(Index rows) const { return sequence_parallel ? own_rows(rows) : rows; }
};

}  // namespace kzero::model
