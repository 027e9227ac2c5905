#include "model/block.hpp"

#include <utility>

#include "model/adapters.hpp"
#include "model/block_attention.hpp"
#include "model/feed_forward.hpp"

namespace kzero::model {

namespace {

template <class T>
Matrix<T> take(memory::Arenas& arenas, Index rows, Index columns) {
  return Matrix<T>(arenas.take<T>(memory::Category::activations, rows * columns), rows, columns);
}

/// Returns all rows of the gradient of x W + b in add_half, from that of its sum, dx [n,D]. With
/// dropout, they may be in `scratch` [n,D].
template <class T>
Matrix<const T> half_gradient(const Context<T>& c, const kernels::Dropout& dropout,
                              Matrix<const T> dx, Matrix<T> scratch) {
  if (!dropout.is_on()) return c.all_rows(dx);
  kernels::drop<T>(*c.exec, dropout, c.stream_in_sequence(), dx, scratch);
  return c.all_rows(scratch);
}

/// Runs forward up to attention.
template <class T>
void fill_attention(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                    Matrix<const T> x, const BlockActivations<T>& saved) {
  for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    const BlockActivations<T> own = activations_of(saved, rows);
    norm_forward<T>(chunk, p.norm1, rows.of(x), own.norm1, own.statistics1);
  });
  attention_half_forward<T>(c, p, batch, saved);
}

/// Computes the middle of a chunk: what attention's half adds to the block's input.
template <class T>
void fill_middle(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                 Matrix<const T> x, const BlockActivations<T>& saved) {
  add_half<T>(c, Site::projection, p, saved.attention, batch.dropout.attention, x, saved.middle);
}

/// Returns whether the gradients of `down`'s and `projection`'s biases are the sums of dx's rows
/// before and after norm_2's backward. With dropout, they are sums of other rows.
template <class T>
bool norm_sums_biases(const Context<T>& c, const BlockDropout& dropout) {
  return c.shape.sums_stream_biases() && !dropout.feed_forward.is_on() &&
         !dropout.attention.is_on();
}

/// Runs backward from a chunk's output to attention. c.hidden_grad's memory holds the gradient of
/// attention's result for all chunks so far, this one's in `dattention`. Returns false if backward
/// ends on the way, because nothing below trains.
template <class T>
bool backward_to_attention(const Context<T>& c, const BlockParams<const T>& p,
                           const BlockBatch& batch, const BlockActivations<T>& saved,
                           tensor::Accumulate accumulate, const BlockParams<T>& g, Matrix<T> dx,
                           Matrix<T> dattention, bool needs_input) {
  const Matrix<const T> dout = half_gradient<T>(c, batch.dropout.feed_forward, dx,
                                                {c.hidden_grad.data(), dx.extent(0), dx.extent(1)});
  BlockParams<T> of_products = g;  // whose biases are not summed elsewhere
  NormGradients<T> of_norm2{dx, tensor::Accumulate::yes, g.norm2, accumulate};
  if (norm_sums_biases(c, batch.dropout)) {
    std::swap(of_norm2.dx_before, of_products.down.bias);
    std::swap(of_norm2.dx_after, of_products.projection.bias);
  }
  if (!feed_forward_backward<T>(c, p, saved, accumulate, of_products, dout, needs_input))
    return false;
  norm_backward<T>(c, p.norm2, saved.middle, saved.statistics2, of_norm2);

  // The gradient of `up` was the last to need norm2.
  const Matrix<const T> dmiddle = half_gradient<T>(c, batch.dropout.attention, dx, saved.norm2);
  linear_backward_weight<T>(c, saved.attention, dmiddle, accumulate, of_products.projection);
  const bool ends = !needs_input && c.shape.adapters.first() == Site::projection;
  if (!ends) linear_backward_input<T>(c, dmiddle, p.projection, dattention);
  adapters_backward<T>(c, Site::projection,
                       {saved.attention, dmiddle, p.adapters, g.adapters, accumulate},
                       ends ? Matrix<T>() : dattention);
  return !ends;
}

}  // namespace

template <class T>
SavedActivations<T>::SavedActivations(memory::Arenas& arenas, const TransformerShape& s,
                                      Index batch) {
  const Index n = batch * s.own_sequence(), ranks = s.sequence_rank.size;
  if (!s.shares_sequences() || s.qk_norm) qkv = take<T>(arenas, n, s.own.qkv_width());
  attention = take<T>(arenas, n, s.own.width);
  middle = take<T>(arenas, s.stream_rows(n), s.hidden);
  if (s.shares_sequences()) {
    heads_qkv = take<T>(arenas, batch * s.sequence, s.exchanged_width() / ranks);
    heads_attention = take<T>(arenas, batch * s.sequence, s.own.width / ranks);
  }
  log_sum = take<float>(arenas, batch * s.own.heads / ranks, s.sequence);
}

template <class T>
HiddenActivations<T>::HiddenActivations(memory::Arenas& arenas, const TransformerShape& s,
                                        Index rows)
    : hidden(take<T>(arenas, rows, s.hidden_columns())) {}

template <class T>
RecomputableActivations<T>::RecomputableActivations(memory::Arenas& arenas,
                                                    const TransformerShape& s, Index batch,
                                                    Index tile_rows) {
  const Index all = batch * s.own_sequence(), n = s.stream_rows(all);
  norm1 = take<T>(arenas, n, s.hidden);
  norm2 = take<T>(arenas, tile_rows > 0 ? tile_rows : n, s.hidden);
  activated = take<T>(arenas, tile_rows > 0 ? tile_rows : all, s.own.feed_forward);
  if (s.qk_norm && !s.shares_sequences())
    rotated = take<T>(arenas, all, s.own.width + s.own.kv_width);
  statistics1 = {arenas, s, n};
  statistics2 = {arenas, s, n};
}

template <class T>
BlockActivations<T> activations_of(const BlockActivations<T>& all, const PartRows& rows) {
  BlockActivations<T> own = all;
  for (Matrix<T>* part : {&own.qkv, &own.attention, &own.middle, &own.norm1, &own.rotated})
    *part = rows.of(*part);
  const PartRows of_tile{all.has_one_tile ? 0 : rows.first, rows.count, rows.is_all};
  // A chunk keeps the memory of its tiles.
  const bool is_chunk = all.has_one_tile && rows.count > static_cast<Index>(all.hidden.extent(0));
  for (Matrix<T>* part : {&own.norm2, &own.hidden, &own.activated}) {
    if (!is_chunk) *part = of_tile.of(*part);
  }
  for (NormStatistics* part : {&own.statistics1, &own.statistics2})
    *part = {rows.of(part->mean), rows.of(part->rstd)};
  return own;
}

template <class T>
void block_forward(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                   Matrix<const T> x, const BlockActivations<T>& saved, Matrix<T> out) {
  fill_attention(c, p, batch, x, saved);
  for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    const BlockActivations<T> own = activations_of(saved, rows);
    fill_middle<T>(chunk, p, batch, rows.of(x), own);
    feed_forward<T>(chunk, p, batch, own, rows.of(out));
  });
}

// Recomputation runs forward's own kernels unchanged because other kernels might round differently.
template <class T>
void block_recompute(const Context<T>& c, deck::RecomputeMode mode, const BlockParams<const T>& p,
                     const BlockBatch& batch, Matrix<const T> x, const BlockActivations<T>& saved) {
  const auto fill_feed_forwards = [&] {
    if (saved.has_one_tile) return;  // backward computes each tile again
    for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
      fill_feed_forward<T>(chunk, p, activations_of(saved, rows));
    });
  };
  switch (mode) {
    case deck::RecomputeMode::none:
      return;
    case deck::RecomputeMode::layernorm_gelu:
      norm_forward<T>(c, p.norm1, x, saved.norm1, saved.statistics1);
      restore_rotated<T>(c, p, batch.documents, saved);
      norm_forward<T>(c, p.norm2, saved.middle, saved.norm2, saved.statistics2);
      activate(c, saved);
      return;
    case deck::RecomputeMode::feed_forward:
      norm_forward<T>(c, p.norm1, x, saved.norm1, saved.statistics1);
      restore_rotated<T>(c, p, batch.documents, saved);
      fill_feed_forwards();
      return;
    case deck::RecomputeMode::full:
      fill_attention(c, p, batch, x, saved);
      for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
        fill_middle<T>(chunk, p, batch, rows.of(x), activations_of(saved, rows));
      });
      fill_feed_forwards();
      return;
  }
}

template <class T>
void block_backward(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                    Matrix<const T> x, const BlockActivations<T>& saved,
                    tensor::Accumulate accumulate, const BlockGradients<T>& g, Matrix<T> dx,
                    bool needs_input) {
  const Matrix<T> dattention(c.hidden_grad.data(), c.rows, c.shape.own.width);
  bool goes_on = true;
  for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
    goes_on = backward_to_attention<T>(chunk, p, batch, activations_of(saved, rows), accumulate,
                                       g.of(number), rows.of(dx), rows.of(dattention), needs_input);
  });
  if (!goes_on) return;
  attention_backward<T>(c, batch, saved, dattention);
  for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
    const BlockActivations<T> own = activations_of(saved, rows);
    const BlockParams<T> gradients = g.of(number);
    projections_backward<T>(chunk, p, batch, own, rows.of(c.qkv_grad()), accumulate, gradients,
                            needs_input);
    if (!needs_input) return;
    norm_backward<T>(chunk, p.norm1, rows.of(x), own.statistics1,
                     {rows.of(dx), tensor::Accumulate::yes, gradients.norm1, accumulate});
  });
}

#define KZERO_INSTANTIATE(T)                                                                      \
  template struct SavedActivations<T>;                                                            \
  template struct HiddenActivations<T>;                                                           \
  template struct RecomputableActivations<T>;                                                     \
  template BlockActivations<T> activations_of<T>(const BlockActivations<T>&, const PartRows&);    \
  template void block_forward<T>(const Context<T>&, const BlockParams<const T>&,                  \
                                 const BlockBatch&, Matrix<const T>, const BlockActivations<T>&,  \
                                 Matrix<T>);                                                      \
  template void block_recompute<T>(const Context<T>&, deck::RecomputeMode,                        \
                                   const BlockParams<const T>&, const BlockBatch&,                \
                                   Matrix<const T>, const BlockActivations<T>&);                  \
  template void block_backward<T>(const Context<T>&, const BlockParams<const T>&,                 \
                                  const BlockBatch&, Matrix<const T>, const BlockActivations<T>&, \
                                  tensor::Accumulate, const BlockGradients<T>&, Matrix<T>, bool);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
