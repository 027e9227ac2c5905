#include "model/transformer_flops.hpp"

#include "model/transformer_shape.hpp"

namespace kzero::model {

namespace {

/// Parameters of each GEMM in a block.
struct BlockGemms {
  double qkv, projection, up, down;

  explicit BlockGemms(const TransformerShape& s) {
    const auto d = static_cast<double>(s.hidden), width = static_cast<double>(s.width());
    qkv = d * (width + 2 * static_cast<double>(s.kv_width()));
    projection = width * d;
    up = d * static_cast<double>(s.hidden_columns());
    down = static_cast<double>(s.feed_forward) * d;
  }
  double all() const { return qkv + projection + up + down; }
};

}  // namespace

double flops_per_token_of(const deck::Model& model) {
  const TransformerShape s(model);
  const auto layers = static_cast<double>(s.layers);
  const double head = static_cast<double>(s.hidden) * static_cast<double>(s.vocab);
  const double attention = static_cast<double>(s.sequence) * static_cast<double>(s.width());
  return 6 * (layers * BlockGemms(s).all() + head) + 6 * layers * attention;
}

// The last block is not recomputed. No block recomputes its final GEMM.
Recomputed recomputed_per_token_of(const deck::Model& model, const deck::Recompute& recompute) {
  const TransformerShape s(model);
  const auto d = static_cast<double>(s.hidden), f = static_cast<double>(s.feed_forward);
  const auto again = static_cast<double>(s.layers - 1);
  const BlockGemms gemms(s);
  Recomputed sum;
  if (recompute.mode == deck::RecomputeMode::full) {
    const double attention = static_cast<double>(s.sequence) * static_cast<double>(s.width());
    sum.operations = again * 2 * (gemms.all() - gemms.down + attention);
  }
  if (recompute.mode == deck::RecomputeMode::layernorm_gelu) {
    const double rotated = s.qk_norm ? 2 * static_cast<double>(s.width() + s.kv_width()) : 0;
    sum.elements = again * (4 * d + static_cast<double>(s.hidden_columns()) + f + rotated);
  }
  if (recompute.offload == deck::Offload::host)
    sum.elements += static_cast<double>(s.layers) * 4 * d;
  return sum;
}

}  // namespace kzero::model
