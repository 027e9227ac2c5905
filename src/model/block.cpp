#include "model/block.hpp"

#include "kernels/gelu.hpp"
#include "kernels/swiglu.hpp"
#include "model/adapters.hpp"
#include "model/block_attention.hpp"

namespace kzero::model {

namespace {

template <class T>
Matrix<T> take(memory::Arenas& arenas, Index rows, Index columns) {
  return Matrix<T>(arenas.take<T>(memory::Category::activations, rows * columns), rows, columns);
}

template <class T>
void activate(const Context<T>& c, const BlockActivations<T>& saved) {
  if (c.shape.activation == ActivationKind::swiglu) {
    kernels::swiglu_forward<T>(*c.exec, saved.hidden, saved.activated);
  } else {
    kernels::gelu_forward<T>(*c.exec, saved.hidden, saved.activated);
  }
}

/// Computes y = addend + x W + b, the end of each half of a block, with dropout of x W + b.
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
  for_each_chunk(c, [&](const Context<T>& chunk, const ChunkRows& rows, Index) {
    const BlockActivations<T> own = activations_of(saved, rows);
    norm_forward<T>(chunk, p.norm1, rows.of(x), own.norm1, own.statistics1);
  });
  attention_half_forward<T>(c, p, batch, saved);
}

/// Runs forward from attention on, for a chunk, except for the final GEMM, the only one whose
/// result backward does not read.
template <class T>
void fill_feed_forward(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                       Matrix<const T> x, const BlockActivations<T>& saved) {
  add_half<T>(c, Site::projection, p, saved.attention, batch.dropout.attention, x, saved.middle);
  norm_forward<T>(c, p.norm2, saved.middle, saved.norm2, saved.statistics2);
  const Matrix<const T> normal = c.all_rows(saved.norm2);
  linear_forward<T>(c, normal, p.up, saved.hidden);
  adapters_forward<T>(c, Site::up, p.adapters, normal, saved.hidden);
  activate(c, saved);
}

/// Computes the gradients of saved.hidden [N,f or 2f], of its bias, if any, and of the adapters of
/// the second layer from the gradient of the feed-forward layer's output.
template <class T>
void activate_backward(const Context<T>& c, const BlockParams<const T>& p,
                       const BlockActivations<T>& saved, Matrix<const T> dout, Matrix<T> dhidden,
                       tensor::Accumulate accumulate, const BlockParams<T>& g) {
  const bool is_swiglu = c.shape.activation == ActivationKind::swiglu;
  const bool has_adapters = c.shape.adapters.has(Site::down);
  if (!is_swiglu && !has_adapters) {
    linear_backward_gelu<T>(c, dout, p.down, saved.hidden, dhidden, accumulate, g.up.bias);
    return;
  }
  linear_backward_input<T>(c, dout, p.down, dhidden);  // with SwiGLU, the first f of 2f columns
  adapters_backward<T>(c, Site::down, {saved.activated, dout, p.adapters, g.adapters, accumulate},
                       dhidden);
  if (is_swiglu) {
    kernels::swiglu_backward<T>(*c.exec, saved.hidden, dhidden);
  } else {
    kernels::gelu_backward<T>(*c.exec, saved.hidden, dhidden);
  }
  if (g.up.bias.size() > 0)
    kernels::sum_rows<T>(*c.exec, dhidden, accumulate, g.up.bias, c.partial);
}

/// Runs backward from the block's output to the output of its first norm_2. Returns false if it
/// ends there, because nothing below trains.
template <class T>
bool feed_forward_backward(const Context<T>& c, const BlockParams<const T>& p,
                           const BlockActivations<T>& saved, tensor::Accumulate accumulate,
                           const BlockParams<T>& g, Matrix<const T> dout, bool needs_input) {
  const Adapters& adapters = c.shape.adapters;
  if (!needs_input && adapters.first() == Site::down) {
    adapters_backward<T>(c, Site::down, {saved.activated, dout, p.adapters, g.adapters, accumulate},
                         {});
    return false;
  }
  const Matrix<T> dhidden = c.qkv_or_ffn_grad_view(c.shape.hidden_columns());
  linear_backward_weight<T>(c, saved.activated, dout, accumulate, g.down);
  activate_backward<T>(c, p, saved, dout, dhidden, accumulate, g);
  const bool ends = !needs_input && adapters.first() == Site::up;
  const bool has_adapters = adapters.has(Site::up);
  Matrix<const T> x;
  if (!c.shape.is_frozen() || has_adapters) x = c.all_rows(saved.norm2);
  linear_backward_weight<T>(c, x, dhidden, accumulate, {g.up.weight, {}});
  if (!ends) linear_backward_input<T>(c, dhidden, p.up, c.hidden_grad);
  if (has_adapters)
    adapters_backward<T>(c, Site::up, {x, dhidden, p.adapters, g.adapters, accumulate},
                         ends ? Matrix<T>() : c.hidden_grad);
  return !ends;
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
  if (!feed_forward_backward<T>(c, p, saved, accumulate, g, dout, needs_input)) return false;
  norm_backward<T>(c, p.norm2, saved.middle, saved.statistics2,
                   {dx, tensor::Accumulate::yes, g.norm2, accumulate});

  // The gradient of `up` was the last to need norm2.
  const Matrix<const T> dmiddle = half_gradient<T>(c, batch.dropout.attention, dx, saved.norm2);
  linear_backward_weight<T>(c, saved.attention, dmiddle, accumulate, g.projection);
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
  hidden = take<T>(arenas, n, s.hidden_columns());
  if (s.shares_sequences()) {
    heads_qkv = take<T>(arenas, batch * s.sequence, s.own.qkv_width() / ranks);
    heads_attention = take<T>(arenas, batch * s.sequence, s.own.width / ranks);
  }
  log_sum = take<float>(arenas, batch * s.own.heads / ranks, s.sequence);
}

template <class T>
RecomputableActivations<T>::RecomputableActivations(memory::Arenas& arenas,
                                                    const TransformerShape& s, Index batch) {
  const Index all = batch * s.own_sequence(), n = s.stream_rows(all);
  norm1 = take<T>(arenas, n, s.hidden);
  norm2 = take<T>(arenas, n, s.hidden);
  activated = take<T>(arenas, all, s.own.feed_forward);
  if (s.qk_norm && !s.shares_sequences())
    rotated = take<T>(arenas, all, s.own.width + s.own.kv_width);
  statistics1 = {arenas, s, n};
  statistics2 = {arenas, s, n};
}

template <class T>
BlockActivations<T> activations_of(const BlockActivations<T>& all, const ChunkRows& rows) {
  BlockActivations<T> own = all;
  for (Matrix<T>* part : {&own.qkv, &own.attention, &own.middle, &own.hidden, &own.norm1,
                          &own.norm2, &own.activated, &own.rotated})
    *part = rows.of(*part);
  for (NormStatistics* part : {&own.statistics1, &own.statistics2})
    *part = {rows.of(part->mean), rows.of(part->rstd)};
  return own;
}

template <class T>
void block_forward(const Context<T>& c, const BlockParams<const T>& p, const BlockBatch& batch,
                   Matrix<const T> x, const BlockActivations<T>& saved, Matrix<T> out) {
  fill_attention(c, p, batch, x, saved);
  for_each_chunk(c, [&](const Context<T>& chunk, const ChunkRows& rows, Index) {
    const BlockActivations<T> own = activations_of(saved, rows);
    fill_feed_forward<T>(chunk, p, batch, rows.of(x), own);
    add_half<T>(chunk, Site::down, p, own.activated, batch.dropout.feed_forward, own.middle,
                rows.of(out));
  });
}

// Recomputation runs forward's own kernels unchanged because other kernels might round differently.
template <class T>
void block_recompute(const Context<T>& c, deck::RecomputeMode mode, const BlockParams<const T>& p,
                     const BlockBatch& batch, Matrix<const T> x, const BlockActivations<T>& saved) {
  switch (mode) {
    case deck::RecomputeMode::none:
      return;
    case deck::RecomputeMode::layernorm_gelu:
      norm_forward<T>(c, p.norm1, x, saved.norm1, saved.statistics1);
      restore_rotated<T>(c, p, batch.documents, saved);
      norm_forward<T>(c, p.norm2, saved.middle, saved.norm2, saved.statistics2);
      activate(c, saved);
      return;
    case deck::RecomputeMode::full:
      fill_attention(c, p, batch, x, saved);
      for_each_chunk(c, [&](const Context<T>& chunk, const ChunkRows& rows, Index) {
        fill_feed_forward<T>(chunk, p, batch, rows.of(x), activations_of(saved, rows));
      });
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
  for_each_chunk(c, [&](const Context<T>& chunk, const ChunkRows& rows, Index number) {
    goes_on = backward_to_attention<T>(chunk, p, batch, activations_of(saved, rows), accumulate,
                                       g.of(number), rows.of(dx), rows.of(dattention), needs_input);
  });
  if (!goes_on) return;
  attention_backward<T>(c, batch, saved, dattention);
  for_each_chunk(c, [&](const Context<T>& chunk, const ChunkRows& rows, Index number) {
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
  template struct RecomputableActivations<T>;                                                     \
  template BlockActivations<T> activations_of<T>(const BlockActivations<T>&, const ChunkRows&);   \
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
