// A decoder-only transformer as a Model: unit 0 is the embedding, units 1 to L are the blocks, unit
// L + 1 is the head with the loss. With adapters, these are frozen, and a further unit per block
// has its adapters, which it runs with the block. It keeps or recomputes activations, and knows its
// tensor group but not ZeRO.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "model/block.hpp"
#include "model/embedding.hpp"
#include "model/head.hpp"
#include "model/residual_stream.hpp"

namespace kzero::model {

template <class T>
using Blocks = std::vector<std::unique_ptr<Block<T>>>;

/// Declares a model's blocks, whose activations may be those of tiles of `tile_rows` rows. The
/// shape must outlive them.
template <class T>
Blocks<T> declare_blocks(const TransformerShape& shape, const deck::Model& model,
                         Index tile_rows = 0);

/// Declares the parameters of an embedding or a head, in the order of memory.
template <class Layer>
Layer declare(const TransformerShape& shape, const deck::Model& model) {
  Declaration unit(shape, model, std::string());
  return Layer(unit);
}

/// The scratch memory that all of them need.
template <class T>
ScratchNeeds scratch_of(const Blocks<T>& blocks, const BatchShape& batch);

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
  Vector<const float> row_losses(Units<const T> parameters, const Batch& batch) override;
  void token_losses(Units<const T> parameters, const Batch& batch,
                    std::span<float> losses) override;
  void top_tokens(Units<const T> parameters, const Batch& batch, std::span<float> losses,
                  const kernels::TopTokens& top) override;
  void loss_and_gradient(Units<const T> parameters, const Batch& batch, float scale,
                         tensor::Accumulate accumulate, Units<T> gradients, double* sum) override;
  void backward(Index u, Units<const T> parameters, const Batch& batch,
                tensor::Accumulate accumulate, Units<T> gradients) override;
  const Execution& exec() const override { return *context_.exec; }
  Arithmetic arithmetic() const override {
    return {context_.attention().arithmetic, context_.attention().refusal};
  }

 private:
  EmbeddingBatch embedding_batch(const Batch& batch) const {
    return {batch.documents, dropout_.embedding(batch.training_sample)};
  }
  BlockPass<T> block_pass(Index i, Units<const T> parameters, const Batch& batch) const {
    const T* adapters = shape_.is_frozen() ? parameters[shape_.adapter_unit(i)] : nullptr;
    return {context_,
            {parameters[i + 1], adapters},
            batch.documents,
            dropout_.block(i, batch.training_sample),
            router_pass(i, batch)};
  }
  RouterPass router_pass(Index i, const Batch& batch) const {
    std::uint64_t* const all = batch.expert_choices;
    return {batch.targets, batch.mean_scale,
            all == nullptr ? nullptr : all + i * shape_.experts.count};
  }
  HeadParams<const T> head_params(Units<const T> units) const {
    return head_.in(units[0], units[head()]);
  }
  HeadParams<T> head_gradients(Units<T> units) const {
    return shape_.is_frozen() ? HeadParams<T>{} : head_.in(units[0], units[head()]);
  }
  /// The gradients of block i, of each chunk.
  std::span<const BlockUnits<T>> block_gradients(Index i, Units<T> gradients);
  /// The units of a chunk's gradients.
  Units<T> of_chunk(Units<T> gradients, Index chunk) const {
    const std::size_t units = gradients.size() / std::max<std::size_t>(1, context_.chunks.size());
    return gradients.subspan(static_cast<std::size_t>(chunk) * units, units);
  }
  HeadSaved<T> head_saved(const PartRows& rows) const {
    return {rows.of(head_saved_.normal), head_saved_.statistics.of(rows)};
  }
  void head_forward(Units<const T> parameters, const Batch& batch);
  void read_losses(std::span<float> losses) const;

  TransformerShape shape_;
  ModelDropout dropout_;
  float z_loss_;
  Embedding embedding_;
  Blocks<T> blocks_;
  Head head_;
  Context<T> context_;
  ResidualStream<T> stream_;
  HeadSaved<T> head_saved_;
  Matrix<T> dx_;                                // [n,D]
  std::vector<BlockUnits<T>> block_gradients_;  // of each chunk
};

}  // namespace kzero::model
