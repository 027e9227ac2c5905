#include "model/feed_forward.hpp"

#include <algorithm>

#include "kernels/gated.hpp"
#include "kernels/gelu.hpp"
#include "kernels/norm.hpp"

namespace kzero::model {

using deck::RecomputeMode;
using tensor::Accumulate;

template <class T>
FeedForward<T>::FeedForward(Declaration& d, const deck::Model& model, Index tile_rows)
    : shape_(d.shape),
      drops_(model.dropout > 0),
      tile_rows_(tile_rows),
      norm_(d, d.family.names.norm2),
      up_(d, deck::Product::up),
      down_(d, deck::Product::down),
      adapter_elements_(d.adapters.elements()) {}

template <class T>
Kept FeedForward<T>::kept(RecomputeMode mode) const {
  if (mode == RecomputeMode::none) return Kept::all;
  return mode == RecomputeMode::layernorm_gelu ? Kept::products : Kept::input;
}

template <class T>
ScratchNeeds FeedForward<T>::scratch(const BatchShape& batch) const {
  const TransformerShape& s = shape_;
  const bool in_tiles = has_tiles(batch, s);
  const Index rows = in_tiles ? batch.tile_rows : batch.batch * s.chunk_rows();
  Index sums = std::max(s.norm_elements(), s.biases ? std::max(s.hidden, up_.out()) : 0);
  if (s.sums_stream_biases()) sums = std::max(sums, kernels::layernorm_sums(s.hidden, true));
  Index tile_sums = down_.begin() + down_.elements() - up_.begin();
  if (s.is_frozen()) {
    tile_sums = up_.has_adapters() || down_.has_adapters() ? adapter_elements_ : 0;
  } else if (dtype_of<T> == Dtype::fp32) {
    tile_sums = 0;
  }
  return {.wide = rows * up_.out(),
          .sum_columns = sums,
          .partial_gradient =
              s.tensor.size > 1 ? std::max(up_.partial_gradient(), down_.partial_gradient()) : 0,
          .tile_sums = in_tiles ? tile_sums : 0};
}

template <class T>
void FeedForward<T>::keep(Activations& memory, const BatchShape& batch, Kept kept) {
  const TransformerShape& s = shape_;
  const Index rows = batch.batch * s.own_sequence(), n = s.stream_rows(rows);
  kept_ = kept;
  has_one_tile_ = kept == Kept::input && has_tiles(batch, s);
  const bool products = kept != Kept::input, passes = kept == Kept::all;
  const Index in_memory = has_one_tile_ ? batch.tile_rows : rows;
  hidden_ = memory.take<T>(products, "hidden", in_memory, up_.out());
  // With dropout, the half before needs all its rows after backward.
  normal_ =
      memory.take<T>(passes, "norm2", has_one_tile_ && !drops_ ? batch.tile_rows : n, s.hidden);
  activated_ = memory.take<T>(passes, "activated", in_memory, down_.in());
  statistics_ = {memory, passes, "mean2", "rstd2", s, n};
}

template <class T>
typename FeedForward<T>::Tile FeedForward<T>::tile_of(Matrix<const T> x, const PartRows& chunk,
                                                      const PartRows& tile) const {
  const auto of = [&](const Matrix<T>& activation) {
    return has_one_tile_ ? PartRows{0, tile.count, tile.is_all}.of(activation)
                         : tile.of(chunk.of(activation));
  };
  return {tile.of(chunk.of(x)), of(normal_), of(hidden_), of(activated_),
          statistics_.of(chunk).of(tile)};
}

template <class T>
void FeedForward<T>::activate(const Execution& exec, const Matrix<T>& hidden,
                              const Matrix<T>& activated) const {
  if (shape_.activation == ActivationKind::swiglu) {
    kernels::swiglu_forward<T>(exec, hidden, activated);
  } else {
    kernels::gelu_forward<T>(exec, hidden, activated);
  }
}

/// Computes the activations before the last product.
template <class T>
void FeedForward<T>::fill_tile(const Context<T>& c, const BlockUnits<const T>& p,
                               const Tile& tile) const {
  norm_.forward(*c.exec, p.own, tile.x, tile.normal, tile.statistics);
  up_.forward(c, p, c.all_rows(tile.normal), tile.hidden);
  activate(*c.exec, tile.hidden, tile.activated);
}

template <class T>
void FeedForward<T>::forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  for_each_chunk(pass.c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    for_each_tile(chunk, [&](const Context<T>& c, const PartRows& part, Index) {
      const Tile tile = tile_of(x, rows, part);
      fill_tile(c, pass.parameters, tile);
      down_.forward_to_stream(c, pass.parameters, tile.activated, pass.dropout.feed_forward, tile.x,
                              part.of(rows.of(y)));
    });
  });
}

template <class T>
void FeedForward<T>::recompute(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  const Context<T>& all = pass.c;
  if (kept_ == Kept::products) {
    norm_.forward(*all.exec, pass.parameters.own, x, normal_, statistics_);
    activate(*all.exec, hidden_, activated_);
  }
  if (kept_ != Kept::input) return;
  if (y.size() > 0) return forward(pass, x, y);
  if (has_one_tile_) return;  // backward computes each tile again
  for_each_chunk(all, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    for_each_tile(chunk, [&](const Context<T>& c, const PartRows& part, Index) {
      fill_tile(c, pass.parameters, tile_of(x, rows, part));
    });
  });
}

/// Where a tile's gradients go: in fp32 to sums, or with one tile, and in fp32 runs without
/// adapters, to the gradients themselves. The first tile overwrites, unless an earlier
/// micro-batch's gradients are there.
template <class T>
LayerGradients<T> FeedForward<T>::of_tile(const Context<T>& chunk, const LayerGradients<T>& g,
                                          Index number) const {
  LayerGradients<T> own = g;
  own.sums = chunk.tile_sums, own.first = up_.begin();
  if (number > 0) {
    own.accumulate = Accumulate::yes;
  } else if (own.sums != nullptr) {
    own.accumulate = Accumulate::no;
  }
  return own;
}

/// Computes the gradients of the hidden columns [N,f or 2f], and of the second layer's adapters,
/// from the gradient of the second layer's result.
template <class T>
void FeedForward<T>::hidden_backward(const Context<T>& c, const BlockPass<T>& pass,
                                     const Tile& tile, Matrix<const T> dout,
                                     const LayerGradients<T>& g, Matrix<T> dhidden) const {
  const bool is_swiglu = shape_.activation == ActivationKind::swiglu;
  if (!is_swiglu && !down_.has_adapters())
    return down_.backward_gelu(c, pass.parameters, dout, tile.hidden, dhidden);
  // With SwiGLU, the first f of 2f columns.
  down_.backward_input(c, pass.parameters, dout, dhidden);
  down_.backward_adapters(c, pass.parameters, tile.activated, dout, g, dhidden);
  if (is_swiglu) {
    kernels::swiglu_backward<T>(*c.exec, tile.hidden, dhidden);
  } else {
    kernels::gelu_backward<T>(*c.exec, tile.hidden, dhidden);
  }
}

/// Runs backward from the gradient of what the half adds, `dout`, to c.hidden_grad, this rank's
/// part of the gradient of the norm's output.
template <class T>
void FeedForward<T>::tile_backward(const Context<T>& c, const BlockPass<T>& pass, const Tile& tile,
                                   Matrix<const T> dout, const LayerGradients<T>& g,
                                   bool needs_input) const {
  if (!needs_input && !up_.trains())
    return down_.backward_adapters(c, pass.parameters, tile.activated, dout, g, {});
  const Matrix<T> dhidden = c.wide_view(up_.out());
  down_.backward_weight(c, tile.activated, dout, g);
  hidden_backward(c, pass, tile, dout, g, dhidden);
  up_.backward_bias(c, dhidden, g);
  Matrix<const T> x;
  if (up_.trains()) x = c.all_rows(tile.normal);
  up_.backward_weight(c, x, dhidden, g);
  const Matrix<T> dx = needs_input ? c.hidden_grad : Matrix<T>();
  if (needs_input) up_.backward_input(c, pass.parameters, dhidden, dx);
  up_.backward_adapters(c, pass.parameters, x, dhidden, g, dx);
}

/// Rounds the tiles' sums to the gradients. Collective over the tensor group with adapters.
template <class T>
void FeedForward<T>::store_sums(const Context<T>& c, const LayerGradients<T>& g) const {
  if (c.tile_sums == nullptr) return;
  if (shape_.is_frozen()) {
    LayerGradients<T> sums = g;
    sums.sums = c.tile_sums;
    up_.store_adapter_sums(c, sums);
    down_.store_adapter_sums(c, sums);
    return;
  }
  // The bias of the second layer is summed outside the tiles.
  const Index count = down_.begin() + down_.elements() - up_.begin();
  store_sum<T>(c, c.tile_sums, g.accumulate,
               Vector<T>(g.units.own + up_.begin(), static_cast<std::size_t>(count)));
}

template <class T>
bool FeedForward<T>::backward(const BlockPass<T>& pass, Matrix<const T> x,
                              const HalfGradients<T>& gradients) {
  for_each_chunk(pass.c, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
    const LayerGradients<T> g = gradients.of(number);
    const Matrix<T> dx = rows.of(gradients.dx);
    const Matrix<const T> dout =
        half_gradient<T>(chunk, pass.dropout.feed_forward, dx,
                         {chunk.hidden_grad.data(), dx.extent(0), dx.extent(1)});
    // With dropout, tiles overwrite the rows of dout that they have read.
    if (!gradients.norms_sum_biases) down_.backward_bias(chunk, dout, g);
    for_each_tile(chunk, [&](const Context<T>& c, const PartRows& part, Index tile_number) {
      const Tile tile = tile_of(x, rows, part);
      if (has_one_tile_) fill_tile(c, pass.parameters, tile);
      tile_backward(c, pass, tile, part.of(dout), of_tile(chunk, g, tile_number),
                    gradients.needs_input);
    });
    store_sums(chunk, g);
    if (!gradients.needs_input) return;
    NormGradients<T> of_norm{dx, Accumulate::yes, norm_.in(g.units.own), g.accumulate};
    if (gradients.norms_sum_biases) {
      of_norm.dx_before = down_.in_unit(g.units.own).bias;
      of_norm.dx_after = gradients.before->in_unit(g.units.own).bias;
    }
    norm_.backward(chunk, pass.parameters.own, rows.of(x), statistics_.of(rows), of_norm);
  });
  return gradients.needs_input;
}

template <class T>
void FeedForward<T>::cache(memory::Arenas& /*arenas*/, Activations& shared,
                           const kernels::CacheShape& /*shape*/, Index rows) {
  normal_ = shared.take<T>(false, "norm2", rows, shape_.hidden);
  statistics_ = {shared, false, "mean2", "rstd2", shape_, rows};
  hidden_ = shared.take<T>(false, "hidden", rows, up_.out());
  activated_ = shared.take<T>(false, "activated", rows, down_.in());
}

template <class T>
void FeedForward<T>::step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x,
                          Matrix<T> y) {
  const Matrix<T> normal = rows.of(normal_), hidden = rows.of(hidden_);
  const Matrix<T> activated = rows.of(activated_);
  norm_.forward(rows.exec, unit, x, normal, statistics_);
  up_.step(rows, unit, normal, hidden);
  activate(rows.exec, hidden, activated);
  down_.step_to_stream(rows, unit, activated, x, y);
}

template <class T>
Work FeedForward<T>::forward_work(const PassShape& pass) const {
  Work work(shape_, pass);
  work.operations = up_.forward_operations() + down_.forward_operations();
  work.messages.gather_stream();
  work.messages.sum_stream();
  return work;
}

template <class T>
Work FeedForward<T>::recompute_work(const PassShape& pass, Kept kept, bool is_last) const {
  Work work(shape_, pass);
  if (kept == Kept::products)
    work.elements = static_cast<double>(2 * shape_.hidden + up_.out() + down_.in());
  if (kept != Kept::input || (is_last && tile_rows_ > 0)) return work;
  work.operations = up_.forward_operations();
  work.messages.gather_stream();
  if (is_last) return work;
  work.operations += down_.forward_operations();
  work.messages.sum_stream();
  return work;
}

template <class T>
Work FeedForward<T>::backward_work(const PassShape& pass, bool needs_input) const {
  Work work(shape_, pass);
  Messages& messages = work.messages;
  const bool reaches_up = needs_input || up_.trains();
  work.operations = down_.backward_operations(reaches_up);
  messages.gather_stream();
  down_.add_gradient_messages(messages);
  if (!reaches_up) return work;
  work.operations += up_.backward_operations(needs_input);
  if (up_.trains()) messages.gather_stream();
  up_.add_gradient_messages(messages);
  if (!needs_input) return work;
  messages.sum_stream();
  messages.sum_norm_gradient();
  return work;
}

template <class T>
double FeedForward<T>::recomputed_in_backward(Kept kept) const {
  const double of_tiles = kept == Kept::input && tile_rows_ > 0 ? up_.forward_operations() : 0;
  return of_tiles + up_.recomputed_operations() + down_.recomputed_operations();
}

#define KZERO_INSTANTIATE(T) template class FeedForward<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
