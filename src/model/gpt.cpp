#include "model/gpt.hpp"

#include "kernels/initialize.hpp"
#include "kernels/reduction.hpp"

namespace kzero::model {

namespace {

template <class T>
std::vector<BlockSaved<T>> take_saved(memory::Arenas& arenas, const GptShape& shape,
                                      deck::RecomputeMode mode, Index batch) {
  BlockProducts<T> products(arenas, shape, batch);
  BlockPasses<T> passes(arenas, shape, batch);
  std::vector<BlockSaved<T>> saved{{products, passes}};
  while (static_cast<Index>(saved.size()) < shape.layers) {
    if (mode != deck::RecomputeMode::block) products = {arenas, shape, batch};
    if (mode == deck::RecomputeMode::none) passes = {arenas, shape, batch};
    saved.push_back({products, passes});
  }
  return saved;
}

}  // namespace

template <class T>
Gpt<T>::Gpt(memory::Arenas& arenas, const deck::Model& model, const deck::Recompute& recompute,
            const BatchShape& batch, tensor::Gemm* gemm)
    : shape_(model),
      recompute_(recompute.mode),
      context_(arenas, gemm, shape_, batch),
      stream_(arenas, shape_, recompute, context_.rows),
      saved_(take_saved<T>(arenas, shape_, recompute_, batch.batch)),
      head_saved_(arenas, shape_, batch.batch) {
  const Index n = context_.rows, d = shape_.hidden;
  dx_ = Matrix<T>(arenas.take<T>(memory::Category::workspace, n * d), n, d);
}

template <class T>
template <class U>
HeadParams<U> Gpt<T>::head_params(std::span<U* const> units) const {
  const Index d = shape_.hidden;
  U* own = units[head()];
  U* output = shape_.tied_embeddings ? units[0] : own + 2 * d;
  return {Vector<U>(own, d), Vector<U>(own + d, d), Matrix<U>(output, shape_.vocab, d)};
}

template <class T>
void Gpt<T>::forward(Index u, Units<const T> parameters, const Batch& batch) {
  if (u == 0) {
    const T* unit = parameters[0];
    kernels::embedding_forward<T>(
        *context_.exec, batch.inputs, Matrix<const T>(unit, shape_.vocab, shape_.hidden),
        Matrix<const T>(unit + shape_.vocab * shape_.hidden, shape_.sequence, shape_.hidden),
        shape_.sequence, stream_.at(0));
  } else {
    const Index i = u - 1;
    stream_.keep(*context_.exec, i);
    block_forward<T>(context_, BlockParams<const T>(shape_, parameters[u]), stream_.at(i),
                     saved_[i], stream_.at(i + 1));
  }
}

template <class T>
double Gpt<T>::loss(Units<const T> parameters, const Batch& batch) {
  head_forward<T>(context_, head_params<const T>(parameters), stream_.at(shape_.layers),
                  batch.targets, head_saved_);
  return kernels::sum_in_order(*context_.exec, context_.losses);
}

template <class T>
double Gpt<T>::loss_and_gradient(Units<const T> parameters, const Batch& batch, float scale,
                                 kernels::Update update, Units<T> gradients) {
  head_forward_backward<T>(context_, head_params<const T>(parameters), stream_.at(shape_.layers),
                           batch.targets, scale, head_saved_, update, head_params<T>(gradients),
                           dx_);
  return kernels::sum_in_order(*context_.exec, context_.losses);
}

template <class T>
void Gpt<T>::backward(Index u, Units<const T> parameters, const Batch& batch,
                      kernels::Update update, Units<T> gradients) {
  if (u == 0) {
    const Index table = shape_.vocab * shape_.hidden;
    T* unit = gradients[0];
    // A tied head has written the table's gradient already; otherwise nothing has in this
    // micro-batch.
    if (!shape_.tied_embeddings && update == kernels::Update::overwrite) {
      kernels::fill<T>(*context_.exec, Vector<T>(unit, table), 0);
    }
    kernels::embedding_backward<T>(*context_.exec, batch.groups, dx_, shape_.sequence,
                                   Matrix<T>(unit, shape_.vocab, shape_.hidden), update,
                                   Matrix<T>(unit + table, shape_.sequence, shape_.hidden));
  } else {
    const Index i = u - 1;
    const BlockParams<const T> own(shape_, parameters[u]);
    stream_.restore(*context_.exec, i);
    // The last block ran forward last: what it left is still there.
    if (u + 1 < head()) block_recompute<T>(context_, recompute_, own, stream_.at(i), saved_[i]);
    block_backward<T>(context_, own, stream_.at(i), saved_[i], update,
                      BlockParams<T>(shape_, gradients[u]), dx_);
  }
}

template class Gpt<float>;
template class Gpt<bf16>;
template class Gpt<fp16>;

}  // namespace kzero::model
