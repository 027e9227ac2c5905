#include "model/gpt_definition.hpp"

#include <algorithm>

#include "model/gpt.hpp"
#include "model/gpt_collectives.hpp"
#include "model/gpt_spec.hpp"
#include "model/gpt_trace.hpp"

namespace kzero::model {

param::Table GptDefinition::table(const TensorRank& tensor) const {
  return gpt_table(model_, tensor);
}

param::Trace GptDefinition::training_trace() const { return gpt_trace(model_, recompute_.mode); }

param::Trace GptDefinition::validation_trace() const { return gpt_validation_trace(model_); }

double GptDefinition::flops_per_token() const { return gpt_flops_per_token(model_); }

Recomputed GptDefinition::recomputed_per_token() const {
  return gpt_recomputed_per_token(model_, recompute_);
}

std::vector<TensorCollective> GptDefinition::tensor_collectives(const TensorRank& tensor,
                                                                Index sequences,
                                                                Dtype precision) const {
  return gpt_collectives(model_, recompute_, tensor, sequences, precision);
}

Benchmark GptDefinition::benchmark(Index most_width, Index sequence) const {
  deck::Model m = model_;
  const Index head = std::min(m.hidden / m.heads, most_width);
  m.heads = std::min(m.heads, std::max<Index>(1, most_width / head));
  m.feed_forward =
      std::clamp<Index>(m.feed_forward * (m.heads * head) / m.hidden, 1, 16 * most_width);
  m.hidden = m.heads * head;
  m.sequence = sequence;
  m.layers = 1;
  m.vocab = 0;  // no head is counted
  const double flops = gpt_flops_per_token(m);
  m.vocab = 1;
  return {std::make_shared<GptDefinition>(m, deck::Recompute{}), 1, flops};
}

std::unique_ptr<Model<float>> GptDefinition::make_as(float /*type*/, memory::Arenas& arenas,
                                                     const Resources& resources) const {
  return std::make_unique<Gpt<float>>(arenas, model_, recompute_, resources);
}

std::unique_ptr<Model<bf16>> GptDefinition::make_as(bf16 /*type*/, memory::Arenas& arenas,
                                                    const Resources& resources) const {
  return std::make_unique<Gpt<bf16>>(arenas, model_, recompute_, resources);
}

std::unique_ptr<Model<fp16>> GptDefinition::make_as(fp16 /*type*/, memory::Arenas& arenas,
                                                    const Resources& resources) const {
  return std::make_unique<Gpt<fp16>>(arenas, model_, recompute_, resources);
}

std::shared_ptr<const Definition> define_gpt(const deck::Config& config) {
  return std::make_shared<GptDefinition>(config.model, config.recompute);
}

}  // namespace kzero::model
