#include "model/transformer_definition.hpp"

#include <algorithm>

#include "model/transformer.hpp"
#include "model/transformer_trace.hpp"

namespace kzero::model {

namespace {

/// Adds zeros to the unit of the output projection if less follows its matrix than the head reads
/// there.
void add_zeros_after_output(const TransformerShape& s, param::Table& table) {
  param::UnitSpec& unit = table[s.tied_embeddings ? 0 : s.layers + 1];
  Index after = -s.own.vocab * s.hidden;
  if (!s.tied_embeddings) after -= s.norm_elements();
  for (const param::ParamSpec& p : unit.params) after += p.held();
  unit.zeros = std::max<Index>(0, read_behind_output(s) - after);
}

/// The declared parts of a model, without memory.
struct Parts {
  TransformerShape shape;
  Embedding embedding;
  Blocks<float> blocks;
  Head head;

  Parts(const deck::Model& model, const TensorRank& tensor, const deck::Lora& lora,
        const SequenceRank& sequence, Index tile_rows)
      : shape(model, tensor, lora, sequence),
        embedding(declare<Embedding>(shape, model)),
        blocks(declare_blocks<float>(shape, model, tile_rows)),
        head(declare<Head>(shape, model)) {}
  Parts(const Parts&) = delete;  // its members refer to the shape
  Parts& operator=(const Parts&) = delete;

  bool needs_input(std::size_t block) const { return block > 0 || !shape.is_frozen(); }

  /// Forward and backward, without recomputation.
  Work training(const PassShape& pass) const {
    Work sum = embedding.forward_work(pass);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      sum += blocks[i]->forward_work(pass);
      sum += blocks[i]->backward_work(pass, needs_input(i));
    }
    sum += head.forward_work(pass);
    sum += head.backward_work(pass);
    if (!shape.is_frozen()) sum += embedding.backward_work(pass);
    return sum;
  }

  /// What recompute() computes again. The last block is not recomputed.
  Work recomputed(const PassShape& pass, deck::RecomputeMode mode) const {
    Work sum(shape, pass);
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i)
      sum += blocks[i]->recompute_work(pass, mode);
    return sum;
  }
};

}  // namespace

param::Table parameter_table(const deck::Model& model, const TensorRank& tensor,
                             const deck::Lora& lora) {
  const TransformerShape shape(model, tensor, lora);
  Declaration embedding(shape, model, "embedding"), head(shape, model, "head");
  static_cast<void>(Embedding(embedding));
  static_cast<void>(Head(head));
  const Blocks<float> blocks = declare_blocks<float>(shape, model);
  param::Table table{embedding.own.spec()};
  for (const auto& block : blocks) table.push_back(block->own());
  table.push_back(head.own.spec());
  add_zeros_after_output(shape, table);
  if (!shape.is_frozen()) return table;
  for (param::UnitSpec& unit : table) unit.trains = false;
  for (const auto& block : blocks) table.push_back(block->adapters());
  return table;
}

param::Table TransformerDefinition::table(const TensorRank& tensor) const {
  return parameter_table(model_, tensor, lora_);
}

param::Trace TransformerDefinition::training_trace() const {
  return transformer_trace(model_, recompute_.mode, lora_);
}

param::Trace TransformerDefinition::validation_trace() const {
  return transformer_validation_trace(model_, lora_);
}

double TransformerDefinition::flops_per_token() const {
  return Parts(model_, {}, lora_, {}, 0).training({}).operations;
}

Recomputed TransformerDefinition::recomputed_per_token() const {
  const Parts parts(model_, {}, lora_, {}, train_.tile_rows);
  const Work work = parts.recomputed({}, recompute_.mode);
  Recomputed sum{work.operations, work.elements};
  for (const auto& block : parts.blocks)
    sum.operations += block->recomputed_in_backward(recompute_.mode);
  // A block's input is read and written on its way to the host and back.
  if (recompute_.offload == deck::Offload::host)
    sum.offloaded = static_cast<double>(4 * model_.layers * model_.hidden);
  return sum;
}

std::vector<ModelCollective> TransformerDefinition::tensor_collectives(const TensorRank& tensor,
                                                                       Index rows,
                                                                       Dtype precision) const {
  const PassShape pass{rows, precision};
  const Parts parts(model_, tensor, lora_, {}, train_.tile_rows);
  Work work = parts.training(pass);
  work += parts.recomputed(pass, recompute_.mode);
  for (Index i = 0; recompute_.partition && i < model_.layers; ++i)
    work.messages.gather_stream(comm::Purpose::checkpointed_activations);
  return work.messages.tensor();
}

std::vector<ModelCollective> TransformerDefinition::sequence_collectives(
    const TensorRank& tensor, const SequenceRank& sequence, Index rows, Dtype precision) const {
  const PassShape pass{rows, precision};
  const Parts parts(model_, tensor, lora_, sequence, train_.tile_rows);
  Work work = parts.training(pass);
  work += parts.recomputed(pass, recompute_.mode);
  return work.messages.sequence();
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
  m.vocab = 1;
  const Parts parts(m, {}, {}, {}, 0);
  const double flops = parts.blocks.front()->forward_work({}).operations +
                       parts.blocks.front()->backward_work({}, true).operations;
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

// Both families of the deck are transformers. Select other kinds of models by their family here.
std::shared_ptr<const Definition> define(const deck::Config& config) {
  return std::make_shared<TransformerDefinition>(config.model, config.recompute, config.train,
                                                 config.lora);
}

std::vector<std::string> parameter_names(const deck::Config& config) {
  std::vector<std::string> names;
  for (const param::UnitSpec& unit : define(config)->table({})) {
    for (const param::ParamSpec& parameter : unit.params) names.push_back(parameter.name);
  }
  return names;
}

}  // namespace kzero::model
