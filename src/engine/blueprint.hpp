// The blueprint of a run, computed from shapes before memory is allocated: units, layout,
// partitioning, and the schedules of the memory plan, the expected traffic and the run.
#pragma once

#include <memory>

#include "data/sampler.hpp"
#include "deck/config.hpp"
#include "engine/matrix_plan.hpp"
#include "model/definition.hpp"
#include "param/flat_layout.hpp"
#include "param/state_array.hpp"
#include "zero/schedule.hpp"
#include "zero/sum_plan.hpp"

namespace kzero::optim {
class Optimizer;
}

namespace kzero::engine {

/// Returns how a resolved deck partitions states over its data ranks. In host builds with MPI, the
/// ranks of a node share partitioned parameters in memory if they are those that hold one copy, and
/// otherwise the units that they gather. Throws Error(usage) if a copy per node is not possible.
zero::Stage stage_of(const deck::Config& config, Index data_ranks);

/// Returns whether the optimizer's state is offloaded from a device. In runs of host builds, the
/// state is always on the host. Their plans with NCCL are of devices.
bool offloads(const deck::Config& config);

/// A model on one rank of the grid.
struct ModelBlueprint {
  model::TensorRank tensor;
  std::shared_ptr<const model::Definition> definition;
  param::Table table;  // local to this tensor rank
  param::FlatLayout layout;
  zero::Stage stage;

  /// The deck must be resolved.
  ModelBlueprint(const deck::Config& config, Index data_ranks, const model::TensorRank& tensor,
                 const zero::Stage& partition, model::Family family = model::define);
};

/// A training run on one rank of the grid.
struct Blueprint : ModelBlueprint {
  /// `table` and `layout`, in which frozen units are empty: of everything except parameters.
  param::Table trained;
  param::FlatLayout trained_layout;
  bool adds_reduced;  // see zero::GradientOptions
  std::shared_ptr<const optim::Optimizer> optimizer;
  zero::SumPlan sums;
  data::BatchPlan batches;
  MatrixPlan matrices;  // empty unless the optimizer needs complete matrices
  zero::Schedule training, validation;

  /// The deck must be resolved. `family` and `rule` replace the deck's model and optimizer.
  Blueprint(const deck::Config& config, Index data_ranks, const model::TensorRank& tensor = {},
            model::Family family = model::define,
            std::shared_ptr<const optim::Optimizer> rule = nullptr);

  const param::StateArrays& state_arrays() const;
};

}  // namespace kzero::engine
