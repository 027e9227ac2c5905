// The blueprint of a run, computed on shapes before any memory exists: units and their layout, what
// is partitioned, and the schedules that memory, traffic and the run itself follow.
#pragma once

#include <memory>

#include "data/sampler.hpp"
#include "deck/config.hpp"
#include "engine/matrix_plan.hpp"
#include "model/definition.hpp"
#include "param/flat_layout.hpp"
#include "param/state_array.hpp"
#include "zero/schedule.hpp"

namespace kzero::optim {
class Optimizer;
}

namespace kzero::engine {

/// What a model is on a rank of the grid.
struct ModelBlueprint {
  model::TensorRank tensor;
  std::shared_ptr<const model::Definition> definition;
  param::Table table;  // local to this tensor rank
  param::FlatLayout layout;
  zero::Stage stage;

  /// The deck is resolved.
  ModelBlueprint(const deck::Config& config, Index data_ranks, const model::TensorRank& tensor,
                 model::Family family = model::define);
};

/// The same of a training.
struct Blueprint : ModelBlueprint {
  data::BatchPlan batches;
  bool adds_reduced;  // see zero::GradientOptions
  std::shared_ptr<const optim::Optimizer> optimizer;
  MatrixPlan matrices;  // that the optimizer needs whole
  zero::Schedule training, validation;

  /// The deck is resolved. `family` and `rule` replace the model and the optimizer that it names.
  Blueprint(const deck::Config& config, Index data_ranks, const model::TensorRank& tensor = {},
            model::Family family = model::define,
            std::shared_ptr<const optim::Optimizer> rule = nullptr);

  /// The state that the optimizer keeps.
  const param::StateArrays& state_arrays() const;
};

}  // namespace kzero::engine
