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

/// The rank that computes: one of a launch, or of a planned one.
struct Machine {
  Index data_ranks = 1;
  Index threads = 1;
  model::TensorRank tensor{};
};

/// The model and the optimizer of a training: without others, the deck's.
struct Ingredients {
  model::Family family = model::define;
  std::shared_ptr<const optim::Optimizer> optimizer{};
};

struct Blueprint {
  model::TensorRank tensor;
  std::shared_ptr<const model::Definition> definition;
  param::Table table;  // local to this tensor rank
  param::FlatLayout layout;
  zero::Stage stage;
  data::BatchPlan batches;
  bool adds_reduced;  // see zero::GradientOptions
  std::shared_ptr<const optim::Optimizer> optimizer;
  MatrixPlan matrices;  // that the optimizer needs whole
  zero::Schedule training, validation;

  /// Computes the blueprint. The deck is resolved.
  Blueprint(const deck::Config& config, Index data_ranks, const model::TensorRank& tensor = {},
            const Ingredients& given = {});

  /// The state that the optimizer keeps.
  const param::StateArrays& state_arrays() const;
};

}  // namespace kzero::engine
