#include "model/feed_forward.hpp"

#include "kernels/gelu.hpp"
#include "kernels/swiglu.hpp"
#include "model/adapters.hpp"

namespace kzero::model {

namespace {

using tensor::Accumulate;

/// Where tiles add up the gradients of a chunk: in fp32 scratch, or with one tile, and in fp32 runs
/// without adapters, in the gradients themselves.
template <class T>
class TileSums {
 public:
  TileSums(const Context<T>& c, Accumulate accumulate, const BlockParams<T>& gradients)
      : c_(c), accumulate_(accumulate), g_(gradients) {}

  bool is_apart() const { return c_.tile_sums != nullptr; }

  /// The first tile overwrites, unless an earlier micro-batch's gradients are there.
  Accumulate of_tile(Index number) const {
    if (number > 0) return Accumulate::yes;
    return is_apart() ? Accumulate::no : accumulate_;
  }

  void add_up(const Context<T>& tile, Index number, Matrix<const T> x, Matrix<const T> dy) const {
    add(tile, number, x, dy, g_.up.weight, c_.tile_sums);
  }
  void add_down(const Context<T>& tile, Index number, Matrix<const T> x, Matrix<const T> dy) const {
    add(tile, number, x, dy, g_.down.weight, down());
  }
  void add_up_bias(const Context<T>& tile, Index number, Matrix<const T> dy) const {
    if (g_.up.bias.size() == 0) return;
    if (is_apart()) {
      kernels::sum_rows<T>(*tile.exec, dy, of_tile(number),
                           Vector<float>(up_bias(), g_.up.bias.size()), tile.partial);
    } else {
      kernels::sum_rows<T>(*tile.exec, dy, of_tile(number), g_.up.bias, tile.partial);
    }
  }

  /// The operands of adapters_backward for a tile.
  AdapterGradients<T> of_adapters(Index number, const T* unit, Matrix<const T> x,
                                  Matrix<const T> dy) const {
    return {x, dy, unit, g_.adapters, of_tile(number), c_.tile_sums};
  }

  /// Rounds the sums to the gradients. Collective over the tensor group with adapters.
  void store() const {
    if (!is_apart()) return;
    if (c_.shape.is_frozen()) {
      for (const Site site : {Site::up, Site::down})
        store_adapter_sums<T>(c_, site, c_.tile_sums, accumulate_, g_);
      return;
    }
    const auto flat = [](const Matrix<T>& x) { return Vector<T>(x.data(), x.size()); };
    store_sum<T>(c_, c_.tile_sums, accumulate_, flat(g_.up.weight));
    store_sum<T>(c_, down(), accumulate_, flat(g_.down.weight));
    if (g_.up.bias.size() > 0) store_sum<T>(c_, up_bias(), accumulate_, g_.up.bias);
  }

 private:
  float* down() const { return is_apart() ? c_.tile_sums + g_.up.weight.size() : nullptr; }
  float* up_bias() const { return down() + g_.down.weight.size(); }

  void add(const Context<T>& tile, Index number, Matrix<const T> x, Matrix<const T> dy,
           const Matrix<T>& weight, float* sum) const {
    if (weight.size() == 0) return;
    if (is_apart()) {
      linear_backward_weight_sum<T>(tile, x, dy, of_tile(number), weight, sum);
    } else {
      linear_backward_weight<T>(tile, x, dy, of_tile(number), {weight, {}});
    }
  }

  const Context<T>& c_;
  Accumulate accumulate_;
  const BlockParams<T>& g_;
};

/// Computes the activations before the last GEMM, of a chunk without tiles or of a tile.
template <class T>
void fill_tile(const Context<T>& c, const BlockParams<const T>& p,
               const BlockActivations<T>& saved) {
  norm_forward<T>(c, p.norm2, saved.middle, saved.norm2, saved.statistics2);
  const Matrix<const T> normal = c.all_rows(saved.norm2);
  linear_forward<T>(c, normal, p.up, saved.hidden);
  adapters_forward<T>(c, Site::up, p.adapters, normal, saved.hidden);
  activate(c, saved);
}

/// Computes the gradients of saved.hidden [N,f or 2f], of its bias, if any, and of the adapters of
/// the second layer from the gradient of the feed-forward layer's output.
template <class T>
void activate_backward(const Context<T>& c, Index number, const BlockParams<const T>& p,
                       const BlockActivations<T>& saved, Matrix<const T> dout, Matrix<T> dhidden,
                       const TileSums<T>& sums, const BlockParams<T>& g) {
  const bool is_swiglu = c.shape.activation == ActivationKind::swiglu;
  const bool has_adapters = c.shape.adapters.has(Site::down);
  if (!is_swiglu && !has_adapters) {
    const bool is_fused = !sums.is_apart();
    linear_backward_gelu<T>(c, dout, p.down, saved.hidden, dhidden, sums.of_tile(number),
                            is_fused ? g.up.bias : Vector<T>());
    if (!is_fused) sums.add_up_bias(c, number, dhidden);
    return;
  }
  linear_backward_input<T>(c, dout, p.down, dhidden);  // with SwiGLU, the first f of 2f columns
  adapters_backward<T>(c, Site::down, sums.of_adapters(number, p.adapters, saved.activated, dout),
                       dhidden);
  if (is_swiglu) {
    kernels::swiglu_backward<T>(*c.exec, saved.hidden, dhidden);
  } else {
    kernels::gelu_backward<T>(*c.exec, saved.hidden, dhidden);
  }
  sums.add_up_bias(c, number, dhidden);
}

}  // namespace

template <class T>
void add_half(const Context<T>& c, Site site, const BlockParams<const T>& p, Matrix<const T> x,
              const kernels::Dropout& dropout, Matrix<const T> addend, Matrix<T> y) {
  if (!dropout.is_on()) {
    adapted_row_parallel_forward<T>(c, site, p, x, addend.data(), y);
    return;
  }
  adapted_row_parallel_forward<T>(c, site, p, x, nullptr, y);
  kernels::add_dropped<T>(*c.exec, dropout, c.stream_in_sequence(), addend, y);
}

template <class T>
void activate(const Context<T>& c, const BlockActivations<T>& saved) {
  if (c.shape.activation == ActivationKind::swiglu) {
    kernels::swiglu_forward<T>(*c.exec, saved.hidden, saved.activated);
  } else {
    kernels::gelu_forward<T>(*c.exec, saved.hidden, saved.activated);
  }
}

template <class T>
void fill_feed_forward(const Context<T>& c, const BlockParams<const T>& p,
                       const BlockActivations<T>& saved) {
  for_each_tile(c, [&](const Context<T>& tile, const PartRows& rows, Index) {
    fill_tile<T>(tile, p, activations_of(saved, rows));
  });
}

template <class T>
void feed_forward(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                  const BlockActivations<T>& saved, Matrix<T> out) {
  const kernels::Dropout& dropout = batch.dropout.feed_forward;
  for_each_tile(c, [&](const Context<T>& tile, const PartRows& rows, Index) {
    const BlockActivations<T> own = activations_of(saved, rows);
    fill_tile<T>(tile, p, own);
    add_half<T>(tile, Site::down, p, own.activated, dropout, own.middle, rows.of(out));
  });
}

template <class T>
bool feed_forward_backward(const Context<T>& c, const BlockParams<const T>& p,
                           const BlockActivations<T>& saved, Accumulate accumulate,
                           const BlockParams<T>& g, Matrix<const T> dout, bool needs_input) {
  const Adapters& adapters = c.shape.adapters;
  const bool ends_at_down = !needs_input && adapters.first() == Site::down;
  const bool ends_at_up = !needs_input && adapters.first() == Site::up;
  const bool has_adapters = adapters.has(Site::up);
  // With dropout, tiles overwrite the rows of dout that they have read.
  if (g.down.bias.size() > 0)
    kernels::sum_rows<T>(*c.exec, dout, accumulate, g.down.bias, c.partial);
  const TileSums<T> sums(c, accumulate, g);
  for_each_tile(c, [&](const Context<T>& tile, const PartRows& rows, Index number) {
    const BlockActivations<T> own = activations_of(saved, rows);
    if (saved.has_one_tile) fill_tile<T>(tile, p, own);
    const Matrix<const T> dtile = rows.of(dout);
    if (ends_at_down) {
      adapters_backward<T>(tile, Site::down,
                           sums.of_adapters(number, p.adapters, own.activated, dtile), {});
      return;
    }
    const Matrix<T> dhidden = tile.qkv_or_ffn_grad_view(c.shape.hidden_columns());
    sums.add_down(tile, number, own.activated, dtile);
    activate_backward<T>(tile, number, p, own, dtile, dhidden, sums, g);
    Matrix<const T> x;
    if (!c.shape.is_frozen() || has_adapters) x = tile.all_rows(own.norm2);
    sums.add_up(tile, number, x, dhidden);
    if (!ends_at_up) linear_backward_input<T>(tile, dhidden, p.up, tile.hidden_grad);
    if (has_adapters)
      adapters_backward<T>(tile, Site::up, sums.of_adapters(number, p.adapters, x, dhidden),
                           ends_at_up ? Matrix<T>() : tile.hidden_grad);
  });
  sums.store();
  return !ends_at_down && !ends_at_up;
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void add_half<T>(const Context<T>&, Site, const BlockParams<const T>&, Matrix<const T>, \
                            const kernels::Dropout&, Matrix<const T>, Matrix<T>);                  \
  template void activate<T>(const Context<T>&, const BlockActivations<T>&);                        \
  template void fill_feed_forward<T>(const Context<T>&, const BlockParams<const T>&,               \
                                     const BlockActivations<T>&);                                  \
  template void feed_forward<T>(const Context<T>&, const BlockParams<const T>&, const BlockBatch&, \
                                const BlockActivations<T>&, Matrix<T>);                            \
  template bool feed_forward_backward<T>(const Context<T>&, const BlockParams<const T>&,           \
                                         const BlockActivations<T>&, Accumulate,                   \
                                         const BlockParams<T>&, Matrix<const T>, bool);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
