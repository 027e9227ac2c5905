#include "model/shape.hpp"

#include <algorithm>
#include <cmath>

#include "model/families.hpp"

namespace kzero::model {

namespace {

LocalShape local_shape(const TransformerShape& s, const TensorRank& t, Index shared_expert) {
  LocalShape own;
  own.heads = s.heads / t.size;
  own.width = own.heads * s.head_dim;
  own.kv_heads = s.kv_heads >= t.size ? s.kv_heads / t.size : 1;
  own.kv_width = own.kv_heads * s.head_dim;
  own.kv_copies = s.kv_heads >= t.size ? 1 : t.size / s.kv_heads;
  own.feed_forward = part_size(s.feed_forward, t.size, t.rank);
  own.shared_expert = part_size(shared_expert, t.size, t.rank);
  own.vocab = part_size(s.vocab, t.size, t.rank);
  own.first_token = part_begin(s.vocab, t.size, t.rank);
  return own;
}

AdapterSettings settings_of(const deck::Lora& lora) {
  if (!trains_adapters(lora)) return {};
  return {lora.rank, static_cast<float>(lora.alpha / static_cast<double>(lora.rank)), lora.targets};
}

}  // namespace

TransformerShape::TransformerShape(const deck::Model& m, const TensorRank& t,
                                   const deck::Lora& lora, const SequenceRank& part)
    : TransformerParts(family_of(m.family).parts),
      layers(m.layers),
      hidden(m.hidden),
      heads(m.heads),
      kv_heads(m.kv_heads > 0 ? m.kv_heads : m.heads),
      head_dim(m.head_dim > 0 ? m.head_dim : m.hidden / m.heads),
      sequence(m.sequence),
      vocab(m.vocab),
      feed_forward(m.feed_forward > 0 ? m.feed_forward : 4 * m.hidden),
      qkv_bias(biases || m.qkv_bias),
      tied_embeddings(m.tied_embeddings),
      sequence_parallel(m.sequence_parallel),
      drops(m.dropout > 0),
      rotates_windows_apart(m.window_rope_theta > 0),
      attention_scale(static_cast<float>(m.attention_scale)),
      residual_scale(static_cast<float>(m.residual_scale)),
      logit_scale(static_cast<float>(1 / m.logit_divisor)),
      norm_eps(static_cast<float>(m.norm_eps)),
      tensor(t),
      sequence_rank(part),
      own(local_shape(*this, t, m.shared_feed_forward)),
      adapters(settings_of(lora)),
      experts{m.experts,
              m.experts_per_token,
              m.router_score == deck::RouterScore::sigmoid,
              m.normalized_gates,
              m.router_bias,
              m.shared_feed_forward,
              m.shared_gate,
              static_cast<float>(m.router_aux_loss),
              static_cast<float>(m.router_z_loss)} {
  if (m.qk_norm) qk_norm = QkNorm::each_head;
  if (m.embedding_scale > 0) {
    embedding_scale = static_cast<float>(m.embedding_scale);
  } else if (scales_embedding) {
    embedding_scale = std::sqrt(static_cast<float>(hidden));
  }
}

Index TransformerShape::longest_bias() const {
  const Index of_qkv = qkv_bias ? own.qkv_width() : 0;
  return biases ? std::max({of_qkv, hidden, hidden_columns()}) : of_qkv;
}

}  // namespace kzero::model
