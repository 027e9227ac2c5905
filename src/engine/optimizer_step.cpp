#include "engine/optimizer_step.hpp"

#include <algorithm>

#include "runtime/profile.hpp"

namespace kzero::engine {

template <class T>
void OptimizerStep<T>::add_squares() {
  const runtime::ProfileRegion region([] { return "kzero::engine::sum_squares"; });
  static_assert(param::shard_alignment % kernels::squares_block == 0);
  const Index rank = blueprint_.tensor.rank;
  kernels::SquaresTable<T> ranges;
  for (std::size_t i = 0; i < blueprint_.trained.size(); ++i) {
    const auto u = static_cast<Index>(i);
    const param::UnitLayout& layout = blueprint_.trained_layout.unit(u);
    const zero::Range own =
        zero::held(zero::Placement::partitioned, layout, machinery_.data->rank());
    if (rank == 0) {
      add_squares(u, own.begin, own.end, ranges);
      continue;
    }
    const param::UnitSpec& spec = blueprint_.trained[i];
    for (const auto& part : param::parts(spec, layout, own.begin, own.end)) {
      if (spec.params[part.param].split.is_owned_by(rank))
        add_squares(u, part.in_unit, part.in_unit + part.count, ranges);
    }
  }
  add_squares(ranges);
}

/// Adds elements [begin, end) of a unit's gradient to the ranges whose squares are summed next.
/// They must be in this rank's shard.
template <class T>
void OptimizerStep<T>::add_squares(Index unit, Index begin, Index end,
                                   kernels::SquaresTable<T>& ranges) {
  if (begin == end) return;
  if (ranges.is_full()) add_squares(ranges);
  const T* shard = buffers_.gradients.owned(unit);
  const Index first = machinery_.data->rank() * blueprint_.trained_layout.unit(unit).shard;
  ranges.add({shard + begin - first, begin, end - begin});
}

/// Sums the squares of the ranges and empties them.
template <class T>
void OptimizerStep<T>::add_squares(kernels::SquaresTable<T>& ranges) {
  if (!ranges.is_empty()) buffers_.step_sums.add_squares(buffers_.model->exec(), ranges);
  ranges.clear();
}

template <class T>
void OptimizerStep<T>::update(optim::Update update, const RouterBalance& balance) {
  const runtime::ProfileRegion region([] { return "kzero::engine::update_parameters"; });
  if (buffers_.matrices) orthogonalize_matrices(update);
  const int last = blueprint_.optimizer->passes() - 1;
  for (update.pass = 0; update.pass < last;) {
    add_up(update);
    machinery_.grid.world().sum(buffers_.sums.words(update.pass));
    ++update.pass;
    buffers_.sums.update_reduced(update);
  }
  change_parameters(update, balance);
}

/// Runs one non-final pass over this rank's state. Adds up the sums of the elements it owns, so
/// that replicated state is counted once.
template <class T>
void OptimizerStep<T>::add_up(const optim::Update& update) {
  const tensor::Execution& exec = buffers_.model->exec();
  buffers_.sums.clear(exec, update.pass);
  for (Index u = 0; u < std::ssize(states_); ++u) {
    const UnitState& unit = states_[u];
    const zero::Range own =
        zero::held(zero::Placement::partitioned, *unit.layout, machinery_.data->rank());
    for (const zero::Range& others :
         {zero::Range{unit.held.begin, own.begin}, {own.end, unit.held.end}}) {
      if (others.begin < others.end) apply(update, share_of(u, update, others));
    }
    if (own.begin == own.end) continue;
    optim::Share<T> share = share_of(u, update, own);
    share.adds = buffers_.sums.adds(update.pass, u);
    apply(update, share);
  }
  buffers_.sums.read(exec, update.pass);
}

/// Runs the last pass. A unit's parameters are gathered while later units are updated and, if the
/// communicator needs no thread of the host, while the next step computes.
template <class T>
void OptimizerStep<T>::change_parameters(const optim::Update& update,
                                         const RouterBalance& balance) {
  const tensor::Execution& exec = buffers_.model->exec();
  const optim::Place of_state =
      buffers_.offload_optimizer ? optim::Place(tensor::HostCores()) : optim::Place(exec);
  for (Index u = 0; u < std::ssize(states_); ++u) {
    if (!blueprint_.trained[u].trains) continue;
    const optim::Share<T> share = share_of(u, update, states_[u].held);
    balance.apply(of_state, u, share);
    apply(update, share);
    if (blueprint_.stage.gathers_updates())
      buffers_.parameters.all_gather_updated(u, exec, *machinery_.data);
  }
  // Control messages follow a step, and only one thread at a time may call MPI.
  if (!machinery_.data->waits_on_device()) buffers_.parameters.finish(exec, *machinery_.data);
  buffers_.parameters.finish_update(exec, *machinery_.data);
}

/// Returns the share of an update for a range of unit u. This rank must hold the range.
template <class T>
optim::Share<T> OptimizerStep<T>::share_of(Index u, const optim::Update& update,
                                           const zero::Range& range) const {
  const UnitState& unit = states_[u];
  const Index at = range.begin - unit.held.begin;
  optim::Share<T> share{unit.spec,
                        unit.layout,
                        range.begin,
                        range.end,
                        buffers_.gradients.result(u) + at,
                        buffers_.updated(u) + at,
                        unit.state + at};
  if (update.pass > 0) share.sums = buffers_.sums.of(update.pass - 1, u);
  share.reduced = buffers_.sums.reduced(u);
  share.tensor_rank = blueprint_.tensor.rank;
  return share;
}

template <class T>
void OptimizerStep<T>::apply(const optim::Update& update, const optim::Share<T>& share) {
  const runtime::ProfileRegion region(
      [&] { return SpanName("{} {}", "kzero::engine::update_unit", share.spec->name); });
  const tensor::Execution& exec = buffers_.model->exec();
  if (buffers_.offload_optimizer) {
    buffers_.offload_optimizer->apply(exec, *blueprint_.optimizer, update, share);
  } else {
    blueprint_.optimizer->update(exec, update, share);
  }
}

/// Replaces the gradients of matrices by the orthogonalized matrices.
template <class T>
void OptimizerStep<T>::orthogonalize_matrices(const optim::Update& update) {
  const runtime::ProfileRegion region([] { return "kzero::engine::orthogonalize_matrices"; });
  const tensor::Execution& exec = buffers_.model->exec();
  const optim::MatrixRule& rule = *blueprint_.optimizer->matrix_rule();
  std::vector<T*> gradients;
  for (Index u = 0; u < std::ssize(states_); ++u) {
    optim::Share<T> share = share_of(u, update, states_[u].held);
    share.prepared = gradients.emplace_back(buffers_.gradients.result(u));
    if (std::ranges::none_of(share.spec->params, &param::ParamSpec::is_matrix)) continue;
    if (buffers_.offload_optimizer) {
      buffers_.offload_optimizer->prepare(exec, rule, update, share);
    } else {
      rule.prepare(exec, update, share);
    }
  }
  buffers_.matrices->run(exec, machinery_, gradients, update.loss_scale);
}

#define KZERO_INSTANTIATE(T) template class OptimizerStep<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::engine
