#include "model/parameter_table.hpp"

#include <algorithm>
#include <cmath>

#include "model/logits_chunk.hpp"
#include "model/transformer_families.hpp"

namespace kzero::model {

using param::Init;
using param::ParamSpec;

UnitSpecs::UnitSpecs(const TransformerShape& shape, const deck::Model& model)
    : s_(shape), std_(model.init_std), residual_std_(model.init_std) {
  if (model.init == deck::Initialization::scaled)
    residual_std_ /= std::sqrt(2.0 * static_cast<double>(shape.layers));
  const Index rank = shape.tensor.rank, copies = shape.own.kv_copies;
  width_ = {shape.width(), shape.own.width * rank, shape.own.width};
  kv_width_ = {shape.kv_width(), shape.own.kv_width * (rank / copies), shape.own.kv_width,
               rank % copies};
  feed_forward_ = {shape.feed_forward, part_begin(shape.feed_forward, shape.tensor.size, rank),
                   shape.own.feed_forward};
  vocab_ = {shape.vocab, shape.own.first_token, shape.own.vocab};
}

ParamSpec UnitSpecs::matrix(std::string name, Index rows, Index columns, double std) {
  return {std::move(name), {rows, columns}, Init::normal, std, true};
}

ParamSpec UnitSpecs::hidden(ParamSpec p, Index matrices) {
  p.matrices = matrices;
  return p;
}

ParamSpec UnitSpecs::vector(std::string name, Index length, Init init) {
  return {std::move(name), {length}, init};
}

ParamSpec UnitSpecs::rows(std::string name, const Extent& e, Index columns, double std) {
  ParamSpec p = matrix(std::move(name), e.total, columns, std);
  p.split = {1, e.total * columns, e.begin * columns, e.length * columns, e.copy};
  return p;
}

ParamSpec UnitSpecs::columns(std::string name, Index rows, Index groups, const Extent& e,
                             double std) {
  ParamSpec p = matrix(std::move(name), rows, groups * e.total, std);
  p.split = {rows * groups, e.total, e.begin, e.length, e.copy};
  return p;
}

ParamSpec UnitSpecs::part(std::string name, Index groups, const Extent& e) {
  return {std::move(name), {groups * e.total},
          Init::zeros,     0,
          false,           {groups, e.total, e.begin, e.length, e.copy}};
}

UnitSpecs::Outputs UnitSpecs::outputs_of(const LinearLayer& layer) const {
  switch (layer.part) {
    case SitePart::q:
      return {1, width_};
    case SitePart::k:
    case SitePart::v:
      return {1, kv_width_};
    case SitePart::gate:
    case SitePart::up:
      return {1, feed_forward_};
    case SitePart::all:
      break;
  }
  if (layer.site == Site::qkv) return {3, width_};
  if (layer.site == Site::up) return {1, feed_forward_};
  return {1, {s_.hidden, 0, s_.hidden}};
}

param::UnitSpec UnitSpecs::adapters(Index i, const std::string& block) const {
  param::UnitSpec unit{"adapters " + std::to_string(i), {}};
  const Index rank = s_.adapters.rank;
  for (const AdapterShape& adapter : s_.adapters.layers) {
    const LinearLayer& layer = adapter.layer;
    const std::string name = block + std::string(layer.path);
    const Extent all{s_.hidden, 0, s_.hidden};
    const Extent in = layer.site == Site::projection ? width_
                      : layer.site == Site::down     ? feed_forward_
                                                     : all;
    const double bound = 1 / std::sqrt(static_cast<double>(in.total));
    ParamSpec a = columns(name + ".lora_A.weight", rank, 1, in, bound);
    if (in.length == in.total) a.split = ParamSpec::full(a.shape);
    a.init = Init::uniform;
    unit.params.push_back(std::move(a));
    const auto [groups, out] = outputs_of(layer);
    ParamSpec b = matrix(name + ".lora_B.weight", groups * out.total, rank, 0);
    b.init = Init::zeros;
    if (out.length < out.total)
      b.split = {groups, out.total * rank, out.begin * rank, out.length * rank, out.copy};
    unit.params.push_back(std::move(b));
  }
  return unit;
}

namespace {

/// Adds zeros to the unit of the output projection if less follows its matrix than the head reads
/// there.
void add_zeros_behind_output(const TransformerShape& s, param::Table& table) {
  param::UnitSpec& unit = table[s.tied_embeddings ? 0 : s.layers + 1];
  Index behind = -s.own.vocab * s.hidden;
  if (!s.tied_embeddings) behind -= s.norm_elements();
  for (const ParamSpec& p : unit.params) behind += p.held();
  unit.zeros = std::max<Index>(0, read_behind_output(s) - behind);
}

}  // namespace

param::Table parameter_table(const deck::Model& model, const TensorRank& tensor,
                             const deck::Lora& lora) {
  const TransformerShape shape(model, tensor, lora);
  const TransformerFamily& family = transformer_family(model.family);
  const auto units = family.specs(shape, model);
  param::Table table{units->embedding()};
  for (Index i = 0; i < shape.layers; ++i) table.push_back(units->block(i));
  table.push_back(units->head());
  add_zeros_behind_output(shape, table);
  if (!shape.is_frozen()) return table;
  for (param::UnitSpec& unit : table) unit.trains = false;
  for (Index i = 0; i < shape.layers; ++i)
    table.push_back(units->adapters(i, std::string(family.blocks) + std::to_string(i) + "."));
  return table;
}

}  // namespace kzero::model
