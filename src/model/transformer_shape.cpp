#include "model/transformer_shape.hpp"

#include "model/transformer_families.hpp"

namespace kzero::model {

namespace {

LocalShape local_shape(const TransformerShape& s, const TensorRank& t) {
  LocalShape own;
  own.heads = s.heads / t.size;
  own.width = own.heads * s.head_dim;
  own.kv_heads = s.kv_heads >= t.size ? s.kv_heads / t.size : 1;
  own.kv_width = own.kv_heads * s.head_dim;
  own.kv_copies = s.kv_heads >= t.size ? 1 : t.size / s.kv_heads;
  own.feed_forward = part_size(s.feed_forward, t.size, t.rank);
  own.vocab = part_size(s.vocab, t.size, t.rank);
  own.first_token = part_begin(s.vocab, t.size, t.rank);
  return own;
}

}  // namespace

TransformerShape::TransformerShape(const deck::Model& m, const TensorRank& t)
    : TransformerParts(transformer_family(m.family).parts),
      layers(m.layers),
      hidden(m.hidden),
      heads(m.heads),
      kv_heads(m.kv_heads > 0 ? m.kv_heads : m.heads),
      head_dim(m.head_dim > 0 ? m.head_dim : m.hidden / m.heads),
      sequence(m.sequence),
      vocab(m.vocab),
      feed_forward(m.feed_forward > 0 ? m.feed_forward : 4 * m.hidden),
      qkv_bias(biases || m.qkv_bias),
      qk_norm(m.qk_norm),
      tied_embeddings(m.tied_embeddings),
      sequence_parallel(m.sequence_parallel),
      norm_eps(static_cast<float>(m.norm_eps)),
      tensor(t),
      own(local_shape(*this, t)) {}

}  // namespace kzero::model
