#include "model/parameter_table.hpp"

#include <cmath>

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

param::Table parameter_table(const deck::Model& model, const TensorRank& tensor) {
  const TransformerShape shape(model, tensor);
  const auto units = transformer_family(model.family).specs(shape, model);
  param::Table table{units->embedding()};
  for (Index i = 0; i < shape.layers; ++i) table.push_back(units->block(i));
  table.push_back(units->head());
  return table;
}

}  // namespace kzero::model
