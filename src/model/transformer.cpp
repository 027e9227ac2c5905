#include "model/transformer.hpp"

#include "kernels/initialize.hpp"
#include "kernels/reduction.hpp"
#include "kernels/row_sums.hpp"

namespace kzero::model {

namespace {

template <class T>
std::vector<BlockActivations<T>> take_saved(memory::Arenas& arenas, const TransformerShape& shape,
                                            deck::RecomputeMode mode, Index batch) {
  SavedActivations<T> products(arenas, shape, batch);
  RecomputableActivations<T> passes(arenas, shape, batch);
  std::vector<BlockActivations<T>> saved{{products, passes}};
  while (static_cast<Index>(saved.size()) < shape.layers) {
    if (mode != deck::RecomputeMode::full) products = {arenas, shape, batch};
    if (mode == deck::RecomputeMode::none) passes = {arenas, shape, batch};
    saved.push_back({products, passes});
  }
  return saved;
}

}  // namespace

template <class T>
Transformer<T>::Transformer(memory::Arenas& arenas, const deck::Model& model,
                            const deck::Recompute& recompute, const Resources& resources,
                            const deck::Train& train, const deck::Lora& lora)
    : shape_(model, resources.link.rank, lora),
      recompute_(resources.batch.passes == Passes::forward ? deck::RecomputeMode::full
                                                           : recompute.mode),
      dropout_(model, train.seed),
      z_loss_(static_cast<float>(train.z_loss)),
      context_(arenas, resources.gemm, model, resources.batch, resources.link, lora),
      stream_(
          resources.batch.passes == Passes::forward
              ? ResidualStream<T>(arenas, shape_, context_.stream_rows, context_.group)
              : ResidualStream<T>(arenas, shape_, recompute, context_.stream_rows, context_.group)),
      saved_(take_saved<T>(arenas, shape_, recompute_, resources.batch.batch)),
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
BlockParams<T> Transformer<T>::block_gradients(Index i, Units<T> units) const {
  if (shape_.is_frozen()) return BlockParams<T>(units[shape_.adapter_unit(i)]);
  return {shape_, units[i + 1]};
}

template <class T>
void Transformer<T>::embed(const T* unit, const Batch& batch) {
  const Context<T>& c = context_;
  const Matrix<const T> wte(unit, shape_.own.vocab, shape_.hidden);
  const Matrix<T>& x = stream_.at(0);
  stream_.begin(*c.exec);
  const bool is_learned = shape_.positions == PositionKind::learned;
  if (!c.is_split() && is_learned) {
    const Matrix<const T> wpe(unit + wte.size(), shape_.sequence, shape_.hidden);
    kernels::embedding_forward<T>(*c.exec, batch.inputs, wte, wpe, shape_.sequence, batch.documents,
                                  x);
    return;
  }
  // One rank supplies a token's row and the others supply zeros, so the sum is exact.
  const Matrix<T>& own = c.is_split() ? c.hidden_grad : x;
  kernels::embedding_lookup<T>(*c.exec, batch.inputs, wte, shape_.own.first_token, own);
  if (c.is_split()) c.sum_to_stream(own, nullptr, nullptr, x);
  if (!is_learned) return;
  const Matrix<const T> wpe(unit + wte.size(), shape_.sequence, shape_.hidden);
  kernels::add_positions<T>(*c.exec, wpe, shape_.sequence, batch.documents, c.first_stream_row(),
                            x);
}

/// Applies the embedding's dropout to x [n,D], or to its gradient, if the model has it.
template <class T>
void Transformer<T>::drop_embedding(const Batch& batch, const Matrix<T>& x) const {
  const kernels::Dropout dropout = dropout_.embedding(batch.training_sample);
  if (!shape_.drops_embedding || !dropout.is_on()) return;
  kernels::drop<T>(*context_.exec, dropout, {context_.first_stream_row(), shape_.sequence}, x, x);
}

template <class T>
void Transformer<T>::embed_backward(T* unit, const Batch& batch, tensor::Accumulate accumulate) {
  drop_embedding(batch, dx_);
  const Matrix<T> dwte(unit, shape_.own.vocab, shape_.hidden);
  Matrix<T> dwpe;
  if (shape_.positions == PositionKind::learned)
    dwpe = Matrix<T>(unit + dwte.size(), shape_.sequence, shape_.hidden);
  // In this micro-batch only a tied head has already written the table's gradient.
  if (!shape_.tied_embeddings && accumulate == tensor::Accumulate::no)
    kernels::fill<T>(*context_.exec, Vector<T>(unit, dwte.size()), 0);
  kernels::embedding_backward<T>(*context_.exec, batch.groups, context_.all_rows(dx_),
                                 shape_.sequence, batch.documents, shape_.own.first_token, dwte,
                                 accumulate, dwpe);
}

template <class T>
void Transformer<T>::forward(Index u, Units<const T> parameters, const Batch& batch) {
  if (u == 0) {
    embed(parameters[0], batch);
    drop_embedding(batch, stream_.at(0));
  } else {
    const Index i = u - 1;
    stream_.keep(*context_.exec, i);
    block_forward<T>(context_, block_params(i, parameters), block_batch(i, batch), stream_.at(i),
                     saved_[i], stream_.at(i + 1));
  }
}

template <class T>
void Transformer<T>::loss(Units<const T> parameters, const Batch& batch, double* sum) {
  head_forward<T>(context_, head_params<const T>(parameters), stream_.at(shape_.layers),
                  batch.targets, head_saved_);
  kernels::sum_in_order(*context_.exec, context_.losses, sum);
}

template <class T>
void Transformer<T>::token_losses(Units<const T> parameters, const Batch& batch,
                                  std::span<float> losses) {
  const Context<T>& c = context_;
  head_forward<T>(c, head_params<const T>(parameters), stream_.at(shape_.layers), batch.targets,
                  head_saved_);
  const Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(losses.data(),
                                                                              losses.size());
  Kokkos::deep_copy(*c.exec, host, c.losses);
  c.exec->fence("kzero::model::losses_read");
}

template <class T>
void Transformer<T>::loss_and_gradient(Units<const T> parameters, const Batch& batch, float scale,
                                       tensor::Accumulate accumulate, Units<T> gradients,
                                       double* sum) {
  head_forward_backward<T>(context_, head_params<const T>(parameters), stream_.at(shape_.layers),
                           batch.targets, {scale, z_loss_}, head_saved_, accumulate,
                           head_gradients(gradients), dx_);
  kernels::sum_in_order(*context_.exec, context_.losses, sum);
}

template <class T>
void Transformer<T>::backward(Index u, Units<const T> parameters, const Batch& batch,
                              tensor::Accumulate accumulate, Units<T> gradients) {
  if (u == 0) {
    embed_backward(gradients[0], batch, accumulate);
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
