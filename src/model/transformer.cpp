#include "model/transformer.hpp"

#include "kernels/initialize.hpp"
#include "kernels/reduction.hpp"
#include "kernels/row_sums.hpp"

namespace kzero::model {

namespace {

/// Recomputation of the feed-forward part keeps one tile's activations, if there are several.
template <class T>
std::vector<BlockActivations<T>> take_saved(memory::Arenas& arenas, const TransformerShape& shape,
                                            deck::RecomputeMode mode, const BatchShape& batch) {
  using Mode = deck::RecomputeMode;
  const bool recomputes = mode == Mode::feed_forward || mode == Mode::full;
  const bool has_one_tile = recomputes && has_tiles(batch, shape);
  const Index tile_rows = has_one_tile ? batch.tile_rows : 0;
  const Index rows = has_one_tile ? tile_rows : batch.batch * shape.own_sequence();
  SavedActivations<T> products(arenas, shape, batch.batch);
  HiddenActivations<T> hidden(arenas, shape, rows);
  RecomputableActivations<T> passes(arenas, shape, batch.batch, tile_rows);
  std::vector<BlockActivations<T>> saved{{products, hidden, passes, has_one_tile}};
  while (static_cast<Index>(saved.size()) < shape.layers) {
    if (mode != Mode::full) products = {arenas, shape, batch.batch};
    if (mode == Mode::none || mode == Mode::layernorm_gelu) hidden = {arenas, shape, rows};
    if (mode == Mode::none) passes = {arenas, shape, batch.batch, tile_rows};
    saved.push_back({products, hidden, passes, has_one_tile});
  }
  return saved;
}

}  // namespace

template <class T>
Transformer<T>::Transformer(memory::Arenas& arenas, const deck::Model& model,
                            const deck::Recompute& recompute, const Resources& resources,
                            const deck::Train& train, const deck::Lora& lora)
    : shape_(model, resources.link.rank, lora, resources.sequence.rank),
      recompute_(resources.batch.passes == Passes::forward ? deck::RecomputeMode::full
                                                           : recompute.mode),
      dropout_(model, train.seed),
      z_loss_(static_cast<float>(train.z_loss)),
      context_(arenas, resources.gemm, model, resources.batch, resources.link, lora,
               resources.sequence),
      stream_(
          resources.batch.passes == Passes::forward
              ? ResidualStream<T>(arenas, shape_, context_.stream_rows, context_.group)
              : ResidualStream<T>(arenas, shape_, recompute, context_.stream_rows, context_.group)),
      saved_(take_saved<T>(arenas, shape_, recompute_, resources.batch)),
      head_saved_(arenas, shape_, resources.batch.batch) {
  if (resources.batch.passes == Passes::forward) return;
  const Index n = context_.stream_rows, d = shape_.hidden;
  dx_ = Matrix<T>(arenas.take<T>(memory::Category::workspace, n * d), n, d);
}

template <class T>
template <class U>
HeadParams<U> Transformer<T>::head_params(std::span<U* const> units) const {
  U* own = units[head()];
  U* output = shape_.tied_embeddings ? units[0] : own + shape_.norm_elements();
  return {norm_at(shape_, own), Matrix<U>(output, shape_.own.vocab, shape_.hidden)};
}

template <class T>
HeadParams<T> Transformer<T>::head_gradients(Units<T> units) const {
  return shape_.is_frozen() ? HeadParams<T>{} : head_params<T>(units);
}

template <class T>
BlockParams<const T> Transformer<T>::block_params(Index i, Units<const T> units) const {
  const T* adapters = shape_.is_frozen() ? units[shape_.adapter_unit(i)] : nullptr;
  return {shape_, units[i + 1], adapters};
}

template <class T>
void Transformer<T>::embed(const Context<T>& c, const T* unit, const Batch& batch,
                           const PartRows& rows) {
  const Matrix<const T> wte(unit, shape_.own.vocab, shape_.hidden);
  const Matrix<T> x = rows.of(stream_.at(0));
  const Vector<const Token> inputs = rows.of(batch.inputs);
  const bool is_learned = shape_.positions == PositionKind::learned;
  const kernels::StreamRows stream = c.stream_in_sequence();
  if (!c.is_split() && is_learned) {
    const Matrix<const T> wpe(unit + wte.size(), shape_.sequence, shape_.hidden);
    kernels::embedding_forward<T>(*c.exec, inputs, wte, wpe, stream, batch.documents, x);
    return;
  }
  // One rank supplies a token's row and the others supply zeros, so the sum is exact.
  const Matrix<T>& own = c.is_split() ? c.hidden_grad : x;
  kernels::embedding_lookup<T>(*c.exec, inputs, wte, shape_.own.first_token, own);
  if (c.is_split()) c.sum_to_stream(own, nullptr, nullptr, x);
  if (!is_learned) return;
  const Matrix<const T> wpe(unit + wte.size(), shape_.sequence, shape_.hidden);
  kernels::add_positions<T>(*c.exec, wpe, stream, batch.documents, x);
}

/// Applies the embedding's dropout to x [n,D], or to its gradient, if the model has it.
template <class T>
void Transformer<T>::drop_embedding(const Context<T>& c, const Batch& batch,
                                    const Matrix<T>& x) const {
  const kernels::Dropout dropout = dropout_.embedding(batch.training_sample);
  if (!shape_.drops_embedding || !dropout.is_on()) return;
  kernels::drop<T>(*c.exec, dropout, c.stream_in_sequence(), x, x);
}

template <class T>
void Transformer<T>::embed_backward(const Context<T>& c, T* unit, const Batch& batch,
                                    const Matrix<T>& dx, const kernels::TokenGroups& groups,
                                    tensor::Accumulate accumulate) {
  drop_embedding(c, batch, dx);
  const Matrix<T> dwte(unit, shape_.own.vocab, shape_.hidden);
  Matrix<T> dwpe;
  if (shape_.positions == PositionKind::learned)
    dwpe = Matrix<T>(unit + dwte.size(), shape_.sequence, shape_.hidden);
  // In this micro-batch only a tied head has already written the table's gradient.
  if (!shape_.tied_embeddings && accumulate == tensor::Accumulate::no)
    kernels::fill<T>(*c.exec, Vector<T>(unit, dwte.size()), 0);
  kernels::embedding_backward<T>(*c.exec, groups, c.all_rows(dx), {c.first_row, shape_.sequence},
                                 batch.documents, shape_.own.first_token, dwte, accumulate, dwpe);
}

template <class T>
void Transformer<T>::forward(Index u, Units<const T> parameters, const Batch& batch) {
  if (u == 0) {
    stream_.begin(*context_.exec);
    for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows& rows, Index) {
      embed(chunk, parameters[0], batch, rows);
      drop_embedding(chunk, batch, rows.of(stream_.at(0)));
    });
  } else {
    const Index i = u - 1;
    stream_.keep(*context_.exec, i);
    block_forward<T>(context_, block_params(i, parameters), block_batch(i, batch), stream_.at(i),
                     saved_[i], stream_.at(i + 1));
  }
}

/// Computes the losses of all rows into the context's.
template <class T>
void Transformer<T>::head_forward(Units<const T> parameters, const Batch& batch) {
  const Matrix<const T> x = stream_.at(shape_.layers);
  for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    model::head_forward<T>(chunk, head_params<const T>(parameters), rows.of(x),
                           rows.of(batch.targets), head_saved(rows));
  });
}

template <class T>
void Transformer<T>::loss(Units<const T> parameters, const Batch& batch, double* sum) {
  head_forward(parameters, batch);
  for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows&, Index number) {
    kernels::sum_in_order(*chunk.exec, chunk.losses, sum + number);
  });
}

template <class T>
void Transformer<T>::token_losses(Units<const T> parameters, const Batch& batch,
                                  std::span<float> losses) {
  const Context<T>& c = context_;
  head_forward(parameters, batch);
  const Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(losses.data(),
                                                                              losses.size());
  Kokkos::deep_copy(*c.exec, host, c.losses);
  c.exec->fence("kzero::model::losses_read");
}

template <class T>
void Transformer<T>::loss_and_gradient(Units<const T> parameters, const Batch& batch, float scale,
                                       tensor::Accumulate accumulate, Units<T> gradients,
                                       double* sum) {
  const Matrix<const T> x = stream_.at(shape_.layers);
  for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
    head_forward_backward<T>(chunk, head_params<const T>(parameters), rows.of(x),
                             rows.of(batch.targets), {scale, z_loss_}, head_saved(rows), accumulate,
                             head_gradients(of_chunk(gradients, number)), rows.of(dx_));
    kernels::sum_in_order(*chunk.exec, chunk.losses, sum + number);
  });
}

template <class T>
void Transformer<T>::backward(Index u, Units<const T> parameters, const Batch& batch,
                              tensor::Accumulate accumulate, Units<T> gradients) {
  if (u == 0) {
    for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
      embed_backward(chunk, of_chunk(gradients, number)[0], batch, rows.of(dx_),
                     batch.groups[static_cast<std::size_t>(number)], accumulate);
    });
  } else {
    const Index i = u - 1;
    const BlockParams<const T> own = block_params(i, parameters);
    const BlockBatch of_block = block_batch(i, batch);
    stream_.restore(*context_.exec, i);
    // The last block was the last to run forward, so its activations still exist.
    if (u + 1 < head())
      block_recompute<T>(context_, recompute_, own, of_block, stream_.at(i), saved_[i]);
    block_backward<T>(context_, own, of_block, stream_.at(i), saved_[i], accumulate,
                      block_gradients(i, gradients), dx_, i > 0 || !shape_.is_frozen());
  }
}

#define KZERO_INSTANTIATE(T) template class Transformer<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
