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

/// How the steps of a phase (data/batch_sizes.hpp) divide their batch and add its gradients.
struct StepPlan {
  Index first_step = 0;
  bool adds_reduced = false;  // see zero::GradientOptions
  zero::SumPlan sums{};
  data::BatchPlan batches{};
};

/// A training run on one rank of the grid. Its own StepPlan is that of the phase of the next step.
struct Blueprint : ModelBlueprint, StepPlan {
  /// `table` and `layout`, in which frozen units are empty: of everything except parameters.
  param::Table trained;
  param::FlatLayout trained_layout;
  std::shared_ptr<const optim::Optimizer> optimizer;
  std::vector<StepPlan> phases;  // of the run
  Index phase = 0;               // number of the current one
  MatrixPlan matrices;           // empty unless the optimizer needs complete matrices
  zero::Schedule training, validation;

  /// The deck must be resolved. `family` and `rule` replace the deck's model and optimizer.
  Blueprint(const deck::Config& config, Index data_ranks, const model::TensorRank& tensor = {},
            model::Family family = model::define,
            std::shared_ptr<const optim::Optimizer> rule = nullptr);

  /// Begins phase `number`.
  void enter(Index number);

  /// The largest number of rounds of a step.
  Index max_rounds() const;

  const param::StateArrays& state_arrays() const;
};

}  // namespace kzero::engine
