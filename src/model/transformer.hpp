// A decoder-only transformer as a Model: unit 0 is the embedding, units 1 to L are the blocks, unit
// L + 1 is the head with the loss. With adapters, these are frozen, and a further unit per block
// has its adapters, which it runs with the block. It keeps or recomputes activations, and knows its
// tensor group but not ZeRO.
#pragma once

#include <algorithm>
#include <vector>

#include "model/block.hpp"
#include "model/head.hpp"
#include "model/residual_stream.hpp"

namespace kzero::model {

template <class T>
class Transformer : public Model<T> {
 public:
  /// Allocates activations, workspace and the tensor group's bucket. Accepts measuring arenas. Of
  /// `train` only the z-loss and the seed of dropout count.
  Transformer(memory::Arenas& arenas, const deck::Model& model, const deck::Recompute& recompute,
              const Resources& resources, const deck::Train& train = {},
              const deck::Lora& lora = {});

  Transformer(const Transformer&) = delete;  // its members refer to one another
  Transformer& operator=(const Transformer&) = delete;

  Index head() const { return shape_.layers + 1; }

  void forward(Index u, Units<const T> parameters, const Batch& batch) override;
  void loss(Units<const T> parameters, const Batch& batch, double* sum) override;
  void token_losses(Units<const T> parameters, const Batch& batch,
                    std::span<float> losses) override;
  void loss_and_gradient(Units<const T> parameters, const Batch& batch, float scale,
                         tensor::Accumulate accumulate, Units<T> gradients, double* sum) override;
  void backward(Index u, Units<const T> parameters, const Batch& batch,
                tensor::Accumulate accumulate, Units<T> gradients) override;
  const Execution& exec() const override { return *context_.exec; }
  Arithmetic arithmetic() const override {
    return {context_.attention.arithmetic, context_.attention.refusal};
  }

 private:
  void drop_embedding(const Context<T>& c, const Batch& batch, const Matrix<T>& x) const;
  BlockBatch block_batch(Index i, const Batch& batch) const {
    return {batch.documents, dropout_.block(i, batch.training_sample)};
  }
  void embed(const Context<T>& c, const T* unit, const Batch& batch, const PartRows& rows);
  void embed_backward(const Context<T>& c, T* unit, const Batch& batch, const Matrix<T>& dx,
                      const kernels::TokenGroups& groups, tensor::Accumulate accumulate);
  template <class U>
  HeadParams<U> head_params(std::span<U* const> units) const;
  HeadParams<T> head_gradients(Units<T> units) const;
  BlockParams<const T> block_params(Index i, Units<const T> units) const;
  BlockGradients<T> block_gradients(Index i, Units<T> units) const {
    return {shape_, units, shape_.is_frozen() ? shape_.adapter_unit(i) : i + 1};
  }
  /// The units of a chunk's gradients.
  Units<T> of_chunk(Units<T> gradients, Index chunk) const {
    const std::size_t units = gradients.size() / std::max<std::size_t>(1, context_.chunks.size());
    return gradients.subspan(static_cast<std::size_t>(chunk) * units, units);
  }
  HeadSaved<T> head_saved(const PartRows& rows) const {
    return {rows.of(head_saved_.normal),
            {rows.of(head_saved_.statistics.mean), rows.of(head_saved_.statistics.rstd)}};
  }
  void head_forward(Units<const T> parameters, const Batch& batch);

  TransformerShape shape_;
  deck::RecomputeMode recompute_;
  ModelDropout dropout_;
  float z_loss_;
  Context<T> context_;
  ResidualStream<T> stream_;
  std::vector<BlockActivations<T>> saved_;  // per block; recomputed blocks share a buffer
  HeadSaved<T> head_saved_;
  Matrix<T> dx_;  // [n,D]
};

}  // namespace kzero::model
