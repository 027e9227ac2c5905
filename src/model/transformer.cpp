#include "model/transformer.hpp"

#include "kernels/initialize.hpp"
#include "kernels/reduction.hpp"
#include "kernels/row_sums.hpp"

namespace kzero::model {

template <class T>
Blocks<T> declare_blocks(const TransformerShape& shape, const deck::Model& model, Index tile_rows) {
  Blocks<T> blocks;
  for (Index i = 0; i < shape.layers; ++i) {
    Declaration block(shape, model, i);
    blocks.push_back(std::make_unique<Block<T>>(block, model, tile_rows));
  }
  return blocks;
}

template <class T>
ScratchNeeds scratch_of(const Blocks<T>& blocks, const BatchShape& batch) {
  ScratchNeeds needs;
  for (const auto& block : blocks) needs.include(block->scratch(batch));
  return needs;
}

template <class T>
Transformer<T>::Transformer(memory::Arenas& arenas, const deck::Model& model,
                            const deck::Recompute& recompute, const Resources& resources,
                            const deck::Train& train, const deck::Lora& lora)
    : shape_(model, resources.link.rank, lora, resources.sequence.rank),
      dropout_(model, train.seed),
      z_loss_(static_cast<float>(train.z_loss)),
      embedding_(declare<Embedding>(shape_, model)),
      blocks_(declare_blocks<T>(shape_, model)),
      head_(declare<Head>(shape_, model)),
      context_(arenas, resources.gemm, shape_, model, resources.batch,
               scratch_of(blocks_, resources.batch), resources.link, resources.sequence),
      stream_(
          resources.batch.passes == Passes::forward
              ? ResidualStream<T>(arenas, shape_, context_.stream_rows, context_.group)
              : ResidualStream<T>(arenas, shape_, recompute, context_.stream_rows, context_.group)),
      head_saved_(arenas, shape_, resources.batch.batch) {
  const bool has_backward = resources.batch.passes == Passes::all;
  Activations memory(arenas);
  for (const auto& block : blocks_)
    block->keep(memory, resources.batch, has_backward ? recompute.mode : deck::RecomputeMode::full);
  if (!has_backward) return;
  const Index n = context_.stream_rows, d = shape_.hidden;
  dx_ = Matrix<T>(arenas.take<T>(memory::Category::workspace, n * d), n, d);
}

template <class T>
std::span<const BlockUnits<T>> Transformer<T>::block_gradients(Index i, Units<T> gradients) {
  block_gradients_.clear();
  for (Index chunk = 0; chunk < shape_.sequence_rank.own_chunks(); ++chunk) {
    const Units<T> units = of_chunk(gradients, chunk);
    if (shape_.is_frozen()) {
      block_gradients_.push_back({nullptr, units[shape_.adapter_unit(i)]});
    } else {
      block_gradients_.push_back({units[i + 1], nullptr});
    }
  }
  return block_gradients_;
}

template <class T>
void Transformer<T>::forward(Index u, Units<const T> parameters, const Batch& batch) {
  if (u == 0) {
    context_.begin_micro_batch(batch.documents);
    stream_.begin(*context_.exec);
    for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows& rows, Index) {
      embedding_.forward<T>(chunk, parameters[0], rows.of(batch.inputs), embedding_batch(batch),
                            rows.of(stream_.at(0)));
    });
  } else {
    const Index i = u - 1;
    stream_.keep(*context_.exec, i);
    blocks_[i]->forward(block_pass(i, parameters, batch), stream_.at(i), stream_.at(i + 1));
  }
}

/// Computes the losses of all rows into the context's.
template <class T>
void Transformer<T>::head_forward(Units<const T> parameters, const Batch& batch) {
  const Matrix<const T> x = stream_.at(shape_.layers);
  for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    model::head_forward<T>(chunk, head_params(parameters), rows.of(x), rows.of(batch.targets),
                           head_saved(rows));
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
Vector<const float> Transformer<T>::row_losses(Units<const T> parameters, const Batch& batch) {
  head_forward(parameters, batch);
  return context_.losses;
}

template <class T>
void Transformer<T>::token_losses(Units<const T> parameters, const Batch& batch,
                                  std::span<float> losses) {
  head_forward(parameters, batch);
  read_losses(losses);
}

template <class T>
void Transformer<T>::top_tokens(Units<const T> parameters, const Batch& batch,
                                std::span<float> losses, const kernels::TopTokens& top) {
  const Matrix<const T> x = stream_.at(shape_.layers);
  for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    head_top_tokens<T>(chunk, head_params(parameters), rows.of(x), rows.of(batch.targets),
                       head_saved(rows), {rows.of(top.tokens), rows.of(top.ln_p)});
  });
  read_losses(losses);
}

/// Copies the losses of all rows to the host and waits for them.
template <class T>
void Transformer<T>::read_losses(std::span<float> losses) const {
  const Context<T>& c = context_;
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
  const kernels::TeacherRows& teacher = batch.teacher;
  for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
    const HeadLoss loss{{scale, z_loss_, rows.of(batch.weights).data()},
                        {rows.of(teacher.tokens), rows.of(teacher.ln_p), teacher.weight}};
    head_forward_backward<T>(chunk, head_params(parameters), rows.of(x), rows.of(batch.targets),
                             loss, head_saved(rows), accumulate,
                             head_gradients(of_chunk(gradients, number)), rows.of(dx_));
    kernels::sum_in_order(*chunk.exec, chunk.losses, sum + number, rows.of(batch.weights));
    if (teacher.tokens.size() > 0)
      kernels::sum_in_order(*chunk.exec, chunk.kl, sum + shape_.sequence_rank.own_chunks() + number,
                            rows.of(batch.weights));
  });
}

template <class T>
void Transformer<T>::backward(Index u, Units<const T> parameters, const Batch& batch,
                              tensor::Accumulate accumulate, Units<T> gradients) {
  if (u == 0) {
    for_each_chunk(context_, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
      embedding_.backward<T>(chunk, of_chunk(gradients, number)[0],
                             batch.groups[static_cast<std::size_t>(number)], embedding_batch(batch),
                             rows.of(dx_), accumulate);
    });
  } else {
    const Index i = u - 1;
    const BlockPass<T> pass = block_pass(i, parameters, batch);
    stream_.restore(*context_.exec, i);
    // The last block was the last to run forward, so its activations still exist.
    if (u + 1 < head()) blocks_[i]->recompute(pass, stream_.at(i));
    blocks_[i]->backward(pass, stream_.at(i), block_gradients(i, gradients), accumulate, dx_,
                         i > 0 || !shape_.is_frozen());
  }
}

#define KZERO_INSTANTIATE(T)                                                                \
  template Blocks<T> declare_blocks<T>(const TransformerShape&, const deck::Model&, Index); \
  template ScratchNeeds scratch_of<T>(const Blocks<T>&, const BatchShape&);                 \
  template class Transformer<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
