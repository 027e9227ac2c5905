#include "model/gpt_trace.hpp"

#include <fmt/format.h>

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

/// The residual stream that enters block i, or for i = L the head.
Value stream(Index i) { return activation(fmt::format("x{}", i)); }
Value saved(Index block) { return activation(fmt::format("saved{}", block)); }

std::vector<Operation> forward_operations(Index layers) {
  std::vector<Operation> trace{{Pass::forward, 0, {parameters(0)}, {stream(0)}}};
  for (Index u = 1; u <= layers; ++u) {
    trace.push_back({Pass::forward, u, {parameters(u), stream(u - 1)}, {stream(u), saved(u - 1)}});
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

param::Trace gpt_trace(const deck::Model& model) {
  const Index layers = model.layers, head = layers + 1;
  const auto dx = [](Index version) { return activation("dx", version); };
  param::Trace trace = forward_operations(layers);
  Operation loss{Pass::loss, head, head_reads(model), {activation("loss"), dx(0)}};
  if (model.tied_embeddings) loss.writes.push_back(gradient(0, 1));
  loss.writes.push_back(gradient(head, 1));
  trace.push_back(std::move(loss));
  for (Index u = layers; u >= 1; --u) {
    const Index version = layers - u;
    trace.push_back({Pass::backward,
                     u,
                     {parameters(u), stream(u - 1), saved(u - 1), dx(version)},
                     {dx(version + 1), gradient(u, 1)}});
  }
  Operation embedding{Pass::backward, 0, {dx(layers)}, {}};
  if (model.tied_embeddings) embedding.reads.push_back(gradient(0, 1));
  embedding.writes.push_back(gradient(0, model.tied_embeddings ? 2 : 1));
  trace.push_back(std::move(embedding));
  return trace;
}

param::Trace gpt_validation_trace(const deck::Model& model) {
  param::Trace trace = forward_operations(model.layers);
  trace.push_back({Pass::loss, model.layers + 1, head_reads(model), {activation("loss")}});
  return trace;
}

}  // namespace kzero::model
