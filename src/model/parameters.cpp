#include "model/parameters.hpp"

#include <cmath>
#include <utility>

namespace kzero::model {

using param::Init;
using param::ParamSpec;

Extents::Extents(const TransformerShape& s) {
  const Index rank = s.tensor.rank, copies = s.own.kv_copies;
  width = {s.width(), s.own.width * rank, s.own.width};
  kv_width = {s.kv_width(), s.own.kv_width * (rank / copies), s.own.kv_width, rank % copies};
  feed_forward = {s.feed_forward, part_begin(s.feed_forward, s.tensor.size, rank),
                  s.own.feed_forward};
  const Index shared = s.experts.shared_width;
  shared_expert = {shared, part_begin(shared, s.tensor.size, rank), s.own.shared_expert};
  vocab = {s.vocab, s.own.first_token, s.own.vocab};
}

Index UnitParameters::add(ParamSpec p) {
  p.name.insert(0, prefix_);
  const Index begin = elements_;
  elements_ += p.held();
  spec_.params.push_back(std::move(p));
  return begin;
}

Declaration::Declaration(const TransformerShape& s, const deck::Model& model, UnitParameters base,
                         UnitParameters low_rank)
    : shape(s),
      family(family_of(model.family)),
      extents(s),
      std(model.init_std),
      residual_std(model.init_std),
      own(std::move(base)),
      adapters(std::move(low_rank)) {
  if (model.init == deck::Initialization::scaled)
    residual_std /= std::sqrt(2.0 * static_cast<double>(s.layers));
}

Declaration::Declaration(const TransformerShape& s, const deck::Model& model, std::string unit)
    : Declaration(s, model, UnitParameters(std::move(unit)), UnitParameters("")) {}

namespace {

std::string prefix_of(const deck::Model& model, Index i) {
  return std::string(family_of(model.family).names.blocks) + std::to_string(i) + ".";
}

}  // namespace

Declaration::Declaration(const TransformerShape& s, const deck::Model& model, Index i)
    : Declaration(s, model, UnitParameters("block " + std::to_string(i), prefix_of(model, i)),
                  UnitParameters("adapters " + std::to_string(i), prefix_of(model, i))) {
  block = i;
  if (model.base_width == 0) return;
  // The entries of hidden matrices fall with the width, so that sums over it do not grow (muP).
  const double narrow =
      std::sqrt(static_cast<double>(model.base_width) / static_cast<double>(model.hidden));
  std *= narrow;
  residual_std *= narrow;
}

ParamSpec matrix_spec(std::string name, Index rows, Index columns, double std) {
  return {std::move(name), {rows, columns}, Init::normal, std, true};
}

ParamSpec vector_spec(std::string name, Index length, Init init) {
  return {std::move(name), {length}, init};
}

ParamSpec bias_spec(std::string name, Index groups, const Extent& e) {
  return {std::move(name), {groups * e.total},
          Init::zeros,     0,
          false,           {groups, e.total, e.begin, e.length, e.copy}};
}

ParamSpec split_by_rows(std::string name, const Extent& e, Index columns, double std) {
  ParamSpec p = matrix_spec(std::move(name), e.total, columns, std);
  p.split = {1, e.total * columns, e.begin * columns, e.length * columns, e.copy};
  return p;
}

ParamSpec split_by_columns(std::string name, Index rows, Index groups, const Extent& e,
                           double std) {
  ParamSpec p = matrix_spec(std::move(name), rows, groups * e.total, std);
  p.split = {rows * groups, e.total, e.begin, e.length, e.copy};
  return p;
}

}  // namespace kzero::model
