#include "model/transformer_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace kzero::model {

namespace {

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

}  // namespace

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

param::Trace transformer_validation_trace(const deck::Model& model, const deck::Lora& lora) {
  param::Trace trace = forward_operations(model.layers, deck::RecomputeMode::none, lora);
  trace.push_back({Pass::loss, model.layers + 1, head_reads(model), {activation("loss")}});
  return trace;
}

}  // namespace kzero::model
