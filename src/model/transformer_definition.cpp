#include "model/transformer_definition.hpp"

#include <algorithm>

#include "model/parameter_table.hpp"
#include "model/sequence_group.hpp"
#include "model/transformer.hpp"
#include "model/transformer_collectives.hpp"
#include "model/transformer_flops.hpp"
#include "model/transformer_shape.hpp"
#include "model/transformer_trace.hpp"

namespace kzero::model {

param::Table TransformerDefinition::table(const TensorRank& tensor) const {
  return parameter_table(model_, tensor, lora_);
}

param::Trace TransformerDefinition::training_trace() const {
  return transformer_trace(model_, recompute_.mode, lora_);
}

param::Trace TransformerDefinition::validation_trace() const {
  return transformer_validation_trace(model_, lora_);
}

double TransformerDefinition::flops_per_token() const { return flops_per_token_of(model_, lora_); }

Recomputed TransformerDefinition::recomputed_per_token() const {
  return recomputed_per_token_of(model_, recompute_, lora_, train_.tile_rows);
}

std::vector<ModelCollective> TransformerDefinition::tensor_collectives(const TensorRank& tensor,
                                                                       Index rows,
                                                                       Dtype precision) const {
  return transformer_collectives(model_, recompute_, tensor, rows, precision, lora_);
}

std::vector<ModelCollective> TransformerDefinition::sequence_collectives(
    const TensorRank& tensor, const SequenceRank& sequence, Index rows, Dtype precision) const {
  const TransformerShape shape(model_, tensor, lora_, sequence);
  return model::sequence_collectives(shape, recompute_.mode, rows, precision);
}

Benchmark TransformerDefinition::benchmark(Index most_width, Index sequence) const {
  const TransformerShape shape(model_);
  deck::Model m = model_;
  const Index head = std::min(shape.head_dim, most_width);
  m.heads = std::min(m.heads, std::max<Index>(1, most_width / head));
  const Index group = std::min(shape.heads / shape.kv_heads, m.heads);
  m.kv_heads = m.heads / group;
  m.heads = m.kv_heads * group;
  m.head_dim = head;
  const auto narrowed = [&](Index columns) { return columns * (m.heads * head) / shape.width(); };
  m.feed_forward = std::clamp<Index>(narrowed(m.feed_forward), 1, 16 * most_width);
  m.hidden = std::max<Index>(1, narrowed(m.hidden));
  m.sequence = sequence;
  m.layers = 1;
  m.vocab = 0;  // excludes the head from the count
  const double flops = flops_per_token_of(m);
  m.vocab = 1;
  return {std::make_shared<TransformerDefinition>(m, deck::Recompute{}), 1, flops};
}

std::unique_ptr<Model<float>> TransformerDefinition::make_as(float /*type*/, memory::Arenas& arenas,
                                                             const Resources& resources) const {
  return std::make_unique<Transformer<float>>(arenas, model_, recompute_, resources, train_, lora_);
}

std::unique_ptr<Model<bf16>> TransformerDefinition::make_as(bf16 /*type*/, memory::Arenas& arenas,
                                                            const Resources& resources) const {
  return std::make_unique<Transformer<bf16>>(arenas, model_, recompute_, resources, train_, lora_);
}

std::unique_ptr<Model<fp16>> TransformerDefinition::make_as(fp16 /*type*/, memory::Arenas& arenas,
                                                            const Resources& resources) const {
  return std::make_unique<Transformer<fp16>>(arenas, model_, recompute_, resources, train_, lora_);
}

std::shared_ptr<const Definition> define_transformer(const deck::Config& config) {
  return std::make_shared<TransformerDefinition>(config.model, config.recompute, config.train,
                                                 config.lora);
}

}  // namespace kzero::model
