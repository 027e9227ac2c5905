#include "model/transformer_definition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "model/transformer.hpp"

namespace kzero::model {

namespace {

/// Adds zeros to the unit of the output projection if less follows its matrix than the head reads
/// there.
void add_zeros_after_output(const TransformerShape& s, param::Table& table) {
  param::UnitSpec& unit = table[s.tied_embeddings ? 0 : s.layers + 1];
  Index after = -s.own.vocab * s.hidden;
  if (!s.tied_embeddings) after -= s.norm_elements();
  for (const param::ParamSpec& p : unit.params) after += p.held();
  unit.zeros = std::max<Index>(0, read_after_output(s) - after);
}

using param::Operation;
using param::Pass;
using param::Value;
using param::ValueKind;

Value parameters(Index unit) { return {ValueKind::parameters, unit, {}, 0}; }
Value gradient(Index unit, Index version) { return {ValueKind::gradient, unit, {}, version}; }

Value activation(const std::string& name, Index version = 0) {
  return {ValueKind::activation, -1, name, version};
}

/// The residual stream that enters block i, or the head for i = L.
Value stream(Index i) { return activation(fmt::format("x{}", i)); }
Value saved(Index block) { return activation(fmt::format("saved{}", block)); }

/// The forward values that the backward of unit u reads in addition to its input. Those of the last
/// block still exist when backward begins.
std::vector<Value> left_by(Index u, Index layers, deck::RecomputeMode mode) {
  if (mode == deck::RecomputeMode::full && u < layers) return {};
  return {saved(u - 1)};
}

/// The units of block u's parameters: its own, and that of its adapters, if it has them.
std::vector<Value> block_reads(Index u, Index layers, const deck::Lora& lora) {
  std::vector<Value> reads{parameters(u)};
  if (trains_adapters(lora)) reads.push_back(parameters(layers + 1 + u));
  return reads;
}

std::vector<Operation> forward_operations(Index layers, deck::RecomputeMode mode,
                                          const deck::Lora& lora) {
  std::vector<Operation> trace{{Pass::forward, 0, {parameters(0)}, {stream(0)}}};
  for (Index u = 1; u <= layers; ++u) {
    Operation& block =
        trace.emplace_back(Operation{Pass::forward, u, block_reads(u, layers, lora), {stream(u)}});
    block.reads.push_back(stream(u - 1));
    std::ranges::copy(left_by(u, layers, mode), std::back_inserter(block.writes));
  }
  return trace;
}

std::vector<Value> head_reads(const deck::Model& model) {
  std::vector<Value> reads;
  if (model.tied_embeddings) reads.push_back(parameters(0));
  reads.push_back(parameters(model.layers + 1));
  reads.push_back(stream(model.layers));
  return reads;
}

/// The trace of a training micro-batch: units forward, the head with its loss, the other units
/// backward. The embedding's backward needs no parameters. A tied head reads the embedding's
/// parameters and writes the first version of their gradient. The only forward values that a
/// recomputed block's backward reads are its input and its parameters.
/// With adapters, every block also reads its unit of them, only these have gradients, and backward
/// ends in the first block.
param::Trace transformer_trace(const deck::Model& model, deck::RecomputeMode mode,
                               const deck::Lora& lora) {
  const Index layers = model.layers, head = layers + 1;
  const bool is_frozen = trains_adapters(lora);
  const auto dx = [](Index version) { return activation("dx", version); };
  param::Trace trace = forward_operations(layers, mode, lora);
  Operation loss{Pass::loss, head, head_reads(model), {activation("loss"), dx(0)}};
  if (model.tied_embeddings && !is_frozen) loss.writes.push_back(gradient(0, 1));
  if (!is_frozen) loss.writes.push_back(gradient(head, 1));
  trace.push_back(std::move(loss));
  for (Index u = layers; u >= 1; --u) {
    const Index version = layers - u;
    Operation& block =
        trace.emplace_back(Operation{Pass::backward, u, block_reads(u, layers, lora), {}});
    block.reads.push_back(stream(u - 1));
    if (u > 1 || !is_frozen) block.writes.push_back(dx(version + 1));
    block.writes.push_back(gradient(is_frozen ? layers + 1 + u : u, 1));
    std::ranges::copy(left_by(u, layers, mode), std::back_inserter(block.reads));
    block.reads.push_back(dx(version));
  }
  if (is_frozen) return trace;
  Operation embedding{Pass::backward, 0, {dx(layers)}, {}};
  if (model.tied_embeddings) embedding.reads.push_back(gradient(0, 1));
  embedding.writes.push_back(gradient(0, model.tied_embeddings ? 2 : 1));
  trace.push_back(std::move(embedding));
  return trace;
}

/// The trace of a validation micro-batch, without gradients.
param::Trace transformer_validation_trace(const deck::Model& model, const deck::Lora& lora) {
  param::Trace trace = forward_operations(model.layers, deck::RecomputeMode::none, lora);
  trace.push_back({Pass::loss, model.layers + 1, head_reads(model), {activation("loss")}});
  return trace;
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
  /// The activations of the last block still exist.
  bool is_recomputed(std::size_t block) const { return block + 1 < blocks.size(); }

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

  param::OperationWork work_of(const param::Operation& operation,
                               const deck::Recompute& recompute) const {
    const PassShape pass;  // per token
    if (operation.pass == param::Pass::loss)
      return {.operations =
                  head.forward_work(pass).operations + head.backward_work(pass).operations};
    if (operation.unit == 0) return {};
    const auto i = static_cast<std::size_t>(operation.unit - 1);
    param::OperationWork work;
    if (recompute.offload == deck::Offload::host) work.kept = static_cast<double>(shape.hidden);
    if (operation.pass == param::Pass::forward) {
      work.operations = blocks[i]->forward_work(pass).operations;
      return work;
    }
    work.operations = blocks[i]->backward_work(pass, needs_input(i)).operations;
    work.recomputed = blocks[i]->recomputed_in_backward(recompute.mode);
    if (!is_recomputed(i)) return work;
    const Work again = blocks[i]->recompute_work(pass, recompute.mode);
    work.recomputed += again.operations, work.recomputed_elements = again.elements;
    return work;
  }

  /// What recompute() computes again.
  Work recomputed(const PassShape& pass, deck::RecomputeMode mode) const {
    Work sum(shape, pass);
    for (std::size_t i = 0; is_recomputed(i); ++i) sum += blocks[i]->recompute_work(pass, mode);
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
  param::Table table{std::move(embedding.own).take()}, adapters;
  for (Index i = 0; i < shape.layers; ++i) {
    Declaration block(shape, model, i);
    static_cast<void>(Block<float>(block, model));
    table.push_back(std::move(block.own).take());
    adapters.push_back(std::move(block.adapters).take());
  }
  table.push_back(std::move(head.own).take());
  add_zeros_after_output(shape, table);
  if (!shape.is_frozen()) return table;
  for (param::UnitSpec& unit : table) unit.trains = false;
  std::ranges::move(adapters, std::back_inserter(table));
  return table;
}

param::Table TransformerDefinition::table(const TensorRank& tensor) const {
  return parameter_table(model_, tensor, lora_);
}

param::Trace TransformerDefinition::training_trace() const {
  param::Trace trace = transformer_trace(model_, recompute_.mode, lora_);
  const Parts parts(model_, {}, lora_, {}, train_.tile_rows);
  for (param::Operation& operation : trace) {
    operation.work = parts.work_of(operation, recompute_);
    if (operation.pass == param::Pass::loss && repeats_head())
      operation.work.recomputed += parts.head.forward_work({}).operations;
  }
  return trace;
}

param::Trace TransformerDefinition::validation_trace() const {
  return transformer_validation_trace(model_, lora_);
}

std::vector<ModelCollective> TransformerDefinition::tensor_collectives(const TensorRank& tensor,
                                                                       Index rows,
                                                                       Dtype precision) const {
  if (tensor.size == 1) return {};
  const PassShape pass{rows, precision};
  const Parts parts(model_, tensor, lora_, {}, train_.tile_rows);
  Work work = parts.training(pass);
  work += parts.recomputed(pass, recompute_.mode);
  if (repeats_head()) work += parts.head.forward_work(pass);
  if (distills_) work += parts.head.distillation_work(pass);
  for (Index i = 0; recompute_.partition && i < model_.layers; ++i)
    work.messages.gather_stream(comm::Purpose::checkpointed_activations);
  return work.messages.tensor();
}

std::vector<ModelCollective> TransformerDefinition::sequence_collectives(
    const TensorRank& tensor, const SequenceRank& sequence, Index rows, Dtype precision) const {
  if (sequence.size == 1) return {};
  const PassShape pass{rows, precision};
  const Parts parts(model_, tensor, lora_, sequence, train_.tile_rows);
  Work work = parts.training(pass);
  work += parts.recomputed(pass, recompute_.mode);
  return work.messages.sequence();
}

Benchmark TransformerDefinition::benchmark(Index max_width, Index sequence) const {
  const TransformerShape shape(model_);
  deck::Model m = model_;
  const Index head = std::min(shape.head_dim, max_width);
  m.heads = std::min(m.heads, std::max<Index>(1, max_width / head));
  const Index group = std::min(shape.heads / shape.kv_heads, m.heads);
  m.kv_heads = m.heads / group;
  m.heads = m.kv_heads * group;
  m.head_dim = head;
  const auto narrowed = [&](Index columns) { return columns * (m.heads * head) / shape.width(); };
  m.feed_forward = std::clamp<Index>(narrowed(m.feed_forward), 1, 16 * max_width);
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

}  // namespace kzero::model
