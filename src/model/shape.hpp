// The shapes of a decoder-only transformer before any memory exists, and the parts of its blocks.
// The transformer's code queries the shape for parts and never for the family.
#pragma once

#include <algorithm>

#include "model/definition.hpp"

namespace kzero::model {

/// The local shapes of one tensor rank (Megatron-LM, arXiv 1909.08053, section 3): complete heads,
/// feed-forward columns and vocabulary rows. If there are fewer KV heads than ranks, neighbouring
/// ranks hold copies of the same head.
struct LocalShape {
  Index heads = 0;
  Index width = 0;  // of all query heads
  Index kv_heads = 0;
  Index kv_width = 0;
  Index kv_copies = 1;  // ranks that hold the same KV heads
  Index feed_forward = 0;
  Index shared_expert = 0;
  Index vocab = 0;
  Index first_token = 0;

  Index qkv_width() const { return width + 2 * kv_width; }
};

enum class NormKind { layer_norm, rms_norm };

/// Learned positions are a parameter that the embedding adds. Rotary positions rotate queries and
/// keys in each block.
enum class PositionKind { learned, rotary };

/// swiglu and geglu are gates: one half of the columns, activated, times the other.
enum class ActivationKind { gelu, swiglu, geglu, xielu };

/// RMSNorm of queries and keys: of each head with the same weights, or of all heads together.
enum class QkNorm { none, each_head, all_heads };

/// The order of a linear layer's weight, in memory and in files.
enum class WeightLayout { in_out, out_in };

/// The parts in which families differ. families.hpp lists them for each family.
struct TransformerParts {
  NormKind norm = NormKind::layer_norm;
  PositionKind positions = PositionKind::learned;
  ActivationKind activation = ActivationKind::gelu;
  bool biases = true;  // of every linear layer in a block
  WeightLayout weight_layout = WeightLayout::in_out;
  bool drops_embedding = true;    // model.dropout also drops elements of the embedding
  QkNorm qk_norm = QkNorm::none;  // requires rotary positions
  float norm_offset = 0;          // RMSNorm multiplies by it plus the weight
  bool scales_embedding = false;  // embeddings are multiplied by sqrt(hidden)
};

/// The adapters that train in place of the model's own parameters (LoRA, Hu et al., arXiv
/// 2106.09685).
struct AdapterSettings {
  Index rank = 0;                      // r; 0: none
  float scale = 1;                     // alpha / r
  std::vector<std::string> targets{};  // the names of layers

  bool has(std::string_view layer) const {
    return std::ranges::find(targets, layer) != targets.end();
  }
};

/// The experts among which each block's router chooses: Shazeer et al., arXiv 1701.06538. Their
/// width is feed_forward.
struct ExpertSettings {
  Index count = 0;          // E; 0: one feed-forward part for all tokens
  Index per_token = 0;      // k
  bool is_sigmoid = false;  // scores are sigmoid(logits); else softmax(logits)
  bool normalizes = true;   // gates are divided by their sum
  bool has_bias = false;    // each expert has one, for the choice alone
  Index shared_width = 0;   // of an expert that computes all rows; 0: none
  bool shared_gate = false;
  float balance = 0;  // factor on E * sum of f P over the rows of a micro-batch
  float z = 0;        // factor on the mean of log(Z)^2

  /// The logits of a row, and its factors on experts' results, with those of the shared expert.
  Index logits() const { return count + (shared_gate ? 1 : 0); }
  Index gates() const { return per_token + (shared_gate ? 1 : 0); }
};

struct TransformerShape : TransformerParts {
  Index layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, sequence = 0, vocab = 0,
        feed_forward = 0;
  bool qkv_bias = true;  // of queries, keys and values; may be true without `biases`
  bool tied_embeddings = true, sequence_parallel = false;
  bool drops = false;                  // elements that halves add to the residual stream
  bool rotates_windows_apart = false;  // layers with a window have their own rotary table
  float attention_scale = 0;           // factor on scores; 0: 1 / sqrt(head_dim)
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  float norm_eps = 1e-5F;
  TensorRank tensor;
  SequenceRank sequence_rank;
  LocalShape own;
  AdapterSettings adapters;
  ExpertSettings experts;

  explicit TransformerShape(const deck::Model& model, const TensorRank& tensor = {},
                            const deck::Lora& lora = {}, const SequenceRank& part = {});

  /// The tokens of each sequence that this rank has, and those of one chunk.
  Index own_sequence() const { return sequence / sequence_rank.size; }
  Index chunk_rows() const { return sequence / sequence_rank.chunks; }
  bool shares_sequences() const { return sequence_rank.size > 1; }
  bool has_experts() const { return experts.count > 0; }
  bool norms_heads() const { return qk_norm != QkNorm::none; }
  /// The different rotary tables of its layers: see model/rotary.hpp.
  Index rotary_tables() const { return rotates_windows_apart ? 2 : 1; }
  /// The KV heads for which a sequence rank computes attention, and how many neighbouring ranks
  /// have copies of them.
  Index attention_kv_heads() const { return std::max<Index>(1, own.kv_heads / sequence_rank.size); }
  Index attention_kv_copies() const {
    return std::max<Index>(1, sequence_rank.size / own.kv_heads);
  }
  /// The columns of q, k and v in attention, of all sequence ranks.
  Index exchanged_width() const { return own.width + 2 * own.kv_width * attention_kv_copies(); }

  /// Returns whether only the adapters train.
  bool is_frozen() const { return adapters.rank > 0; }
  /// The unit of the adapters of block i.
  Index adapter_unit(Index i) const { return layers + 2 + i; }

  Index width() const { return heads * head_dim; }
  Index kv_width() const { return kv_heads * head_dim; }
  /// Parameters of a norm: a weight and, for LayerNorm, a bias.
  Index norm_elements() const { return norm == NormKind::rms_norm ? hidden : 2 * hidden; }
  /// Local parameters of the projections to queries, keys and values.
  Index qkv_elements() const { return own.qkv_width() * (hidden + (qkv_bias ? 1 : 0)); }
  /// Local elements of the longest bias of a linear layer; 0 if none has one.
  Index longest_bias() const;
  /// Returns whether the backward of a block's second norm can also sum the gradients of the two
  /// biases that the block adds to the residual stream. With sequence parallelism it lacks rows,
  /// and with a narrower feed-forward layer the scratch memory for four sums.
  bool sums_stream_biases() const {
    const bool has_all_rows = !sequence_parallel || tensor.size == 1;
    const bool has_room = own.feed_forward >= 4 * hidden;
    return biases && norm == NormKind::layer_norm && !is_frozen() && has_all_rows && has_room;
  }
  /// Whether the feed-forward layer's first GEMM computes gate and up.
  bool has_gate() const {
    return activation == ActivationKind::swiglu || activation == ActivationKind::geglu;
  }
  /// Local columns of the feed-forward layer's first GEMM.
  Index hidden_columns() const { return has_gate() ? 2 * own.feed_forward : own.feed_forward; }

  /// Rows [begin, end) of the residual stream [N,D] that a tensor rank holds with sequence
  /// parallelism (Korthikanti et al., arXiv 2205.05198), or keeps of a checkpoint partitioned by
  /// P_a.
  Index first_row(Index rows, Index rank) const { return part_begin(rows, tensor.size, rank); }
  Index own_rows(Index rows) const { return part_size(rows, tensor.size, tensor.rank); }
  /// The rows of the residual stream that norms and sums process.
  Index stream_rows(Index rows) const { return sequence_parallel ? own_rows(rows) : rows; }
};

}  // namespace kzero::model
