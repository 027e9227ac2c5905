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

/// Parameters of a block's A, and of its A and B.
struct AdapterGemms {
  double inner = 0, all = 0;

  explicit AdapterGemms(const Adapters& adapters) {
    for (const AdapterShape& adapter : adapters.layers) {
      inner += static_cast<double>(adapters.rank * adapter.in);
      all += static_cast<double>(adapters.rank * (adapter.in + adapter.out));
    }
  }
};

/// Parameters of the adapters of a GEMM, which recomputation of that GEMM multiplies again.
double forward_again(const Adapters& adapters, Site site) {
  double sum = 0;
  for (const AdapterShape& adapter : adapters.layers) {
    if (adapter.layer.site == site)
      sum += static_cast<double>(adapters.rank * (adapter.in + adapter.out));
  }
  return sum;
}

/// Forward, and the gradients of activations, which end at the first adapter.
double frozen_flops_per_token(const TransformerShape& s, double head, double attention) {
  const BlockGemms gemms(s);
  const AdapterGemms adapters(s.adapters);
  const auto layers = static_cast<double>(s.layers);
  // Products that the first block's backward does not compute, in multiples of 2 operations.
  const Site first = s.adapters.first();
  double unreached = gemms.qkv;
  if (first > Site::qkv) unreached += gemms.projection + 2 * attention;
  if (first > Site::projection) unreached += gemms.up;
  if (first > Site::up) unreached += gemms.down;
  double below = 0;  // the gradient of the input of the first adapters
  for (const AdapterShape& adapter : s.adapters.layers) {
    if (adapter.layer.site == first) below += static_cast<double>(s.adapters.rank * adapter.in);
  }
  return 4 * (layers * gemms.all() + head) + 6 * layers * (attention + adapters.all) -
         2 * (unreached + below);
}

}  // namespace

double flops_per_token_of(const deck::Model& model, const deck::Lora& lora) {
  const TransformerShape s(model, {}, lora);
  const auto layers = static_cast<double>(s.layers);
  const double head = static_cast<double>(s.hidden) * static_cast<double>(s.vocab);
  const double attention = static_cast<double>(s.sequence) * static_cast<double>(s.width());
  if (s.is_frozen()) return frozen_flops_per_token(s, head, attention);
  return 6 * (layers * BlockGemms(s).all() + head) + 6 * layers * attention;
}

// The last block is not recomputed, except for a feed-forward part in tiles. No block recomputes
// its final GEMM.
Recomputed recomputed_per_token_of(const deck::Model& model, const deck::Recompute& recompute,
                                   const deck::Lora& lora, Index tile_rows) {
  using Mode = deck::RecomputeMode;
  const TransformerShape s(model, {}, lora);
  const auto d = static_cast<double>(s.hidden), f = static_cast<double>(s.feed_forward);
  const auto layers = static_cast<double>(s.layers);
  const double again = layers - 1, in_tiles = tile_rows > 0 ? layers : again;
  const BlockGemms gemms(s);
  const double up = in_tiles * 2 * (gemms.up + forward_again(s.adapters, Site::up));
  const double rotated = s.qk_norm ? 2 * static_cast<double>(s.width() + s.kv_width()) : 0;
  Recomputed sum;
  if (recompute.mode == Mode::full) {
    const double attention = static_cast<double>(s.sequence) * static_cast<double>(s.width());
    const double adapters =
        forward_again(s.adapters, Site::qkv) + forward_again(s.adapters, Site::projection);
    sum.operations = again * 2 * (gemms.qkv + gemms.projection + attention + adapters) + up;
  }
  if (recompute.mode == Mode::feed_forward) {
    sum.operations = up;
    sum.elements = again * (2 * d + rotated);
  }
  if (recompute.mode == Mode::layernorm_gelu)
    sum.elements = again * (4 * d + static_cast<double>(s.hidden_columns()) + f + rotated);
  sum.operations += layers * 2 * AdapterGemms(s.adapters).inner;
  if (recompute.offload == deck::Offload::host) sum.offloaded = layers * 4 * d;
  return sum;
}

}  // namespace kzero::model
