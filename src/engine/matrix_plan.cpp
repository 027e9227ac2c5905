#include "engine/matrix_plan.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kzero::engine {

namespace {

MatrixParameter parameter_of(const std::vector<param::Table>& tables, std::size_t unit,
                             std::size_t number) {
  const param::ParamSpec& spec = tables.front()[unit].params[number];
  MatrixParameter p;
  p.unit = static_cast<Index>(unit);
  p.matrices = spec.matrices;
  p.shape = {spec.matrix_rows(), spec.matrix_columns()};
  for (const param::Table& table : tables) p.splits.push_back(table[unit].params[number].split);
  return p;
}

double cost_of(const MatrixParameter& p) {
  return static_cast<double>(p.matrices) * optim::newton_schulz_operations(p.shape);
}

}  // namespace

MatrixPlan::MatrixPlan(const std::vector<param::Table>& tables, const param::FlatLayout& layout,
                       const zero::Stage& stage, Index tensor_rank)
    : layout_(layout.units()),
      placement_(stage.optimizer),
      data_ranks_(layout.ranks()),
      tensor_ranks_(static_cast<Index>(tables.size())),
      tensor_rank_(tensor_rank) {
  std::vector<double> costs;
  for (std::size_t u = 0; u < layout_.size(); ++u) {
    const auto& specs = tables[tensor_rank][u].params;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (!specs[i].is_matrix()) continue;
      MatrixParameter& p = parameters_.emplace_back(parameter_of(tables, u, i));
      p.in_unit = layout_[u].offsets[i];
      costs.push_back(cost_of(p));
    }
  }
  owners_ = optim::MatrixOwners(costs, data_ranks_ * tensor_ranks_);
}

const MatrixParameter* MatrixPlan::at(Index round, Index data_rank, Index tensor_rank) const {
  const Index task = owners_.task(data_rank * tensor_ranks_ + tensor_rank, round);
  return task < 0 ? nullptr : &parameters_[task];
}

zero::Range MatrixPlan::held(const MatrixParameter& p, Index data_rank) const {
  const Index elements = local_elements(p, tensor_rank_);
  const zero::Range own = zero::held(placement_, layout_[p.unit], data_rank);
  return {std::clamp<Index>(own.begin - p.in_unit, 0, elements),
          std::clamp<Index>(own.end - p.in_unit, 0, elements)};
}

Index MatrixPlan::first_held(const MatrixParameter& p, Index data_rank) const {
  const param::UnitLayout& unit = layout_[p.unit];
  const zero::Range part = held(p, data_rank);
  if (part.begin == part.end) return 0;
  return p.in_unit + part.begin - zero::held(placement_, unit, data_rank).begin;
}

Index MatrixPlan::source(const MatrixParameter& p, Index tensor_rank) const {
  const param::Split& wanted = p.splits[tensor_rank];
  const auto same = [&](const param::Split& s) {
    return s.begin == wanted.begin && s.length == wanted.length;
  };
  return std::ranges::find_if(p.splits, same) - p.splits.begin();
}

Index MatrixPlan::offset(const MatrixParameter& p, Index tensor_rank) const {
  Index before = 0;
  for (Index t = 0; t < source(p, tensor_rank); ++t) {
    if (source(p, t) == t) before += local_elements(p, t);
  }
  return before;
}

/// A split of rows, or no split, is one block: complete rows of all matrices. A split of columns
/// has one block for each row of each matrix.
MatrixPart MatrixPlan::part(const MatrixParameter& p, Index tensor_rank, Index matrix) const {
  const param::Split& split = p.splits[tensor_rank];
  const Index columns = p.shape.columns, all_columns = p.matrices * columns;
  if (split.blocks == 1) {
    KZERO_EXPECT(split.begin % all_columns == 0 && split.length % all_columns == 0);
    return {split.begin / all_columns, 0,          split.length / all_columns, columns,
            matrix * columns,          all_columns};
  }
  KZERO_EXPECT(split.blocks == p.shape.rows * p.matrices && split.stride == columns);
  return {
      0, split.begin, p.shape.rows, split.length, matrix * split.length, p.matrices * split.length};
}

std::vector<optim::MatrixShape> MatrixPlan::shapes() const {
  std::vector<optim::MatrixShape> all;
  for (const MatrixParameter& p : parameters_) all.push_back(p.shape);
  return all;
}

Index MatrixPlan::local_begin(Index round, Index data_rank, Index tensor_rank) const {
  Index begin = 0;
  for (Index t = 0; t < tensor_rank; ++t) {
    if (const MatrixParameter* p = at(round, data_rank, t))
      begin += round_up(local_elements(*p, tensor_rank_), param::shard_alignment);
  }
  return begin;
}

Index MatrixPlan::gathered_elements() const {
  Index largest = 0;
  for (Index round = 0; gathers() && round < rounds(); ++round) {
    for (Index d = 0; d < data_ranks_; ++d)
      largest = std::max(largest, local_begin(round, d, tensor_ranks_));
  }
  return largest;
}

Index MatrixPlan::whole_elements() const {
  Index largest = 0;
  for (const MatrixParameter& p : parameters_)
    largest = std::max(largest, p.matrices * p.shape.elements());
  return tensor_ranks_ > 1 ? largest : 0;
}

double MatrixPlan::max_operations() const { return std::ranges::max(owners_.load); }

double MatrixPlan::operations(Index data_rank, Index tensor_rank) const {
  if (empty()) return 0;
  return owners_.load[data_rank * tensor_ranks_ + tensor_rank];
}

MatrixTraffic traffic_of(const MatrixPlan& plan, Index data_rank, std::span<const int> nodes) {
  MatrixTraffic sent;
  const auto leaves_node = [&](Index rank) { return nodes[rank] != nodes[data_rank]; };
  const Index me = plan.tensor_rank();
  for (Index round = 0; round < plan.rounds(); ++round) {
    for (Index d = 0; d < plan.data_ranks(); ++d) {
      for (Index t = 0; t < plan.tensor_ranks(); ++t) {
        const MatrixParameter* p = plan.at(round, d, t);
        if (p == nullptr) continue;
        const zero::Range held = plan.held(*p, data_rank);
        if (d != data_rank) {
          if (!plan.gathers()) continue;
          sent.gathered += held.end - held.begin;
          if (leaves_node(d)) sent.gathered_between_nodes += held.end - held.begin;
          continue;
        }
        for (Index r = 0; r < plan.data_ranks(); ++r) {
          const zero::Range back = plan.held(*p, r);
          if (r != data_rank) sent.returned += back.end - back.begin;
          if (leaves_node(r)) sent.returned_between_nodes += back.end - back.begin;
        }
        if (t != me && plan.source(*p, me) == me)
          sent.gathered_tensor += plan.local_elements(*p, me);
        for (Index r = 0; t == me && r < plan.tensor_ranks(); ++r) {
          if (r != me) sent.returned_tensor += plan.local_elements(*p, r);
        }
      }
    }
  }
  return sent;
}

}  // namespace kzero::engine
