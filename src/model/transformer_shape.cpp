#include "model/transformer_shape.hpp"

#include <algorithm>

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

/// The columns [begin, begin + length) of a GEMM's local output that belong to a part of it.
struct Columns {
  Index begin, length;
};

Columns columns_of(const TransformerShape& s, const LinearLayer& layer) {
  const LocalShape& own = s.own;
  switch (layer.part) {
    case SitePart::q:
      return {0, own.width};
    case SitePart::k:
      return {own.width, own.kv_width};
    case SitePart::v:
      return {own.width + own.kv_width, own.kv_width};
    case SitePart::gate:
      return {0, own.feed_forward};
    case SitePart::up:
      return {own.feed_forward, own.feed_forward};
    case SitePart::all:
      break;
  }
  if (layer.site == Site::qkv) return {0, own.qkv_width()};
  return {0, layer.site == Site::up ? own.feed_forward : s.hidden};
}

Index inputs_of(const TransformerShape& s, Site site) {
  if (site == Site::projection) return s.own.width;
  return site == Site::down ? s.own.feed_forward : s.hidden;
}

Adapters adapters_of(const TransformerShape& s, deck::ModelFamily family, const deck::Lora& lora) {
  Adapters all;
  if (!trains_adapters(lora)) return all;
  all.rank = lora.rank;
  all.scale = static_cast<float>(lora.alpha / static_cast<double>(lora.rank));
  Index begin = 0;
  for (const LinearLayer& layer : transformer_family(family).layers) {
    if (std::ranges::find(lora.targets, layer.name()) == lora.targets.end()) continue;
    const Columns columns = columns_of(s, layer);
    const bool is_copied = layer.part == SitePart::k || layer.part == SitePart::v;
    all.layers.push_back({layer, inputs_of(s, layer.site), columns.length, columns.begin, begin,
                          is_copied ? s.own.kv_copies : 1});
    begin += lora.rank * (all.layers.back().in + all.layers.back().out);
  }
  return all;
}

}  // namespace

TransformerShape::TransformerShape(const deck::Model& m, const TensorRank& t,
                                   const deck::Lora& lora, const SequenceRank& part)
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
      sequence_rank(part),
      own(local_shape(*this, t)),
      adapters(adapters_of(*this, m.family, lora)) {}

Index TransformerShape::longest_bias() const {
  const Index of_qkv = qkv_bias ? own.qkv_width() : 0;
  return biases ? std::max({of_qkv, hidden, hidden_columns()}) : of_qkv;
}

}  // namespace kzero::model
