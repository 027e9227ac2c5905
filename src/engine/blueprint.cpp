#include "engine/blueprint.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "comm/placement.hpp"
#include "data/batch_sizes.hpp"
#include "engine/sums_place.hpp"
#include "optim/optimizer.hpp"
#include "tensor/view.hpp"

namespace kzero::engine {

namespace {

/// Chunks of a sequence that a rank computes.
Index own_chunks(const deck::Config& config) {
  return config.train.sequence_chunks / config.grid.sequence;
}

zero::ScheduleOptions schedule_options(const deck::Config& config, const zero::Stage& stage) {
  return {stage, config.zero.prefetch_units, comm::overlap_of(config) == comm::Overlap::yes,
          own_chunks(config) > 1};
}

/// Returns the number of copies of partitioned parameters.
Index copies_of(const deck::Config& config) {
  if (config.zero.parameters != deck::SharesParameters::node) return 1;
  const Index nodes = config.placement.data_nodes;
  KZERO_REQUIRE(
      nodes > 0, ExitCode::usage,
      "zero.parameters = \"node\" needs nodes with equally many data-parallel ranks; start "
      "as many ranks on each node, or use \"rank\"");
  return nodes;
}

zero::SumShape sum_shape(const deck::Config& config, Index data_ranks, Index micro_batches,
                         bool adds_reduced) {
  return {.ranks = data_ranks,
          .nodes = std::max<Index>(1, config.placement.data_nodes),
          .terms = adds_reduced ? micro_batches * config.train.sequence_chunks
                                : data_ranks * own_chunks(config),
          .blocks = config.train.sum_blocks,
          .by_library = config.zero.reduction == deck::ReductionOrder::library,
          .sequence = config.grid.sequence,
          .own = own_chunks(config)};
}

StepPlan step_plan(const deck::Config& config, const Blueprint& b, const data::Phase& phase) {
  const Index ranks = b.layout.ranks(), micro_batches = phase.size / config.train.micro_batch;
  StepPlan plan{.first_step = phase.first_step};
  plan.adds_reduced = config.zero.accumulate == deck::Accumulate::reduced &&
                      micro_batches * config.grid.sequence > ranks;
  plan.sums = plan_sums(config, b, sum_shape(config, ranks, micro_batches, plan.adds_reduced));
  plan.batches = {.global_batch = phase.size,
                  .ranks = ranks,
                  .micro_batch = config.train.micro_batch,
                  .nodes = plan.sums.nodes(),
                  .by_node = plan.sums.route() == zero::Route::step,
                  .sequence = config.grid.sequence,
                  .chunks = config.train.sequence_chunks};
  return plan;
}

/// The factor on the learning rate of hidden matrices (muP). An update whose elements have one
/// size, as AdamW's and Lion's, changes the product with a vector by its size times the width.
/// Muon's, which is orthogonal times the root of the width, does so by the root.
double hidden_lr_scale(const deck::Config& config) {
  if (config.model.base_width == 0) return 1;
  const double narrow =
      static_cast<double>(config.model.base_width) / static_cast<double>(config.model.hidden);
  return config.optimizer.kind == deck::OptimizerKind::muon ? std::sqrt(narrow) : narrow;
}

/// Returns the table with the group and the factor of each parameter. A group that none belongs to
/// was refused with the deck.
param::Table with_rates(param::Table table, const deck::Config& config) {
  const double hidden = hidden_lr_scale(config);
  for (param::UnitSpec& unit : table) {
    for (param::ParamSpec& parameter : unit.params) {
      parameter.group = deck::group_of(config.optimizer.groups, parameter.name);
      parameter.lr_scale = parameter.is_matrix() ? hidden : 1;
    }
  }
  return table;
}

MatrixPlan matrices_of(const Blueprint& b) {
  if (b.optimizer->matrix_rule() == nullptr) return {};
  std::vector<param::Table> tables;
  for (Index rank = 0; rank < b.tensor.size; ++rank)
    tables.push_back(param::trained_of(b.definition->table({rank, b.tensor.size})));
  return {tables, b.trained_layout, b.stage, b.tensor.rank};
}

}  // namespace

zero::Stage stage_of(const deck::Config& config, Index data_ranks) {
  const Index copies = copies_of(config), nodes = config.placement.data_nodes;
  const bool shares = tensor::on_host && !comm::moves_by_itself(config);
  return zero::stage(config.zero.stage, data_ranks, copies, shares && copies == nodes,
                     shares && nodes > 1 ? data_ranks / nodes : 1);
}

ModelBlueprint::ModelBlueprint(const deck::Config& config, Index data_ranks,
                               const model::TensorRank& rank, const zero::Stage& partition,
                               model::Family family)
    : tensor(rank),
      definition(family(config)),
      table(with_rates(definition->table(rank), config)),
      layout(table, data_ranks),
      stage(partition) {}

Blueprint::Blueprint(const deck::Config& config, Index data_ranks, const model::TensorRank& rank,
                     model::Family family, std::shared_ptr<const optim::Optimizer> rule)
    : ModelBlueprint(config, data_ranks, rank, stage_of(config, data_ranks), family),
      trained(param::trained_of(table)),
      trained_layout(trained, data_ranks),
      optimizer(rule ? std::move(rule) : optim::make_optimizer(config)),
      matrices(matrices_of(*this)),
      training(definition->training_trace(), layout, schedule_options(config, stage)),
      validation(definition->validation_trace(), layout, schedule_options(config, stage)) {
  const data::BatchSizes sizes(config.train);
  for (const data::Phase& part : sizes.phases()) phases.push_back(step_plan(config, *this, part));
  enter(0);
}

void Blueprint::enter(Index number) {
  phase = number;
  static_cast<StepPlan&>(*this) = phases[number];
}

Index Blueprint::max_rounds() const {
  Index most = 0;
  for (const StepPlan& plan : phases) most = std::max(most, plan.batches.rounds());
  return most;
}

bool offloads(const deck::Config& config) {
  return config.zero.offload == deck::Offload::host &&
         (!tensor::on_host || comm::moves_by_itself(config));
}

const param::StateArrays& Blueprint::state_arrays() const { return optimizer->state(); }

}  // namespace kzero::engine
