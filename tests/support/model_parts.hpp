// The blocks of a model and the context in which they and the head run, for tests of parts.
#pragma once

#include "model/transformer.hpp"

namespace kzero::tests {

template <class T>
struct ModelParts {
  model::TransformerShape shape;
  model::Blocks<T> blocks;
  model::Context<T> context;

  /// Parts of any shape, as far as `deck` agrees with it.
  ModelParts(memory::Arenas& arenas, tensor::Gemm* gemm, const deck::Model& deck,
             const model::BatchShape& batch, const model::TransformerShape& of_parts)
      : shape(of_parts),
        blocks(model::declare_blocks<T>(shape, deck)),
        context(arenas, gemm, shape, deck, batch, model::scratch_of(blocks, batch)) {}

  ModelParts(memory::Arenas& arenas, tensor::Gemm* gemm, const deck::Model& deck,
             const model::BatchShape& batch)
      : ModelParts(arenas, gemm, deck, batch, model::TransformerShape(deck)) {}

  ModelParts(const ModelParts&) = delete;  // the blocks refer to the shape
  ModelParts& operator=(const ModelParts&) = delete;
};

}  // namespace kzero::tests
