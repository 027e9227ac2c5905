// The plan of a deck on a grid of ranks: memory, traffic and time of a step. The numbers are the
// run's, because the functions are: engine::planned_bytes constructs the buffers,
// engine::expected_traffic computes the traffic. Nothing is allocated; neither MPI nor Kokkos has
// to be initialized.
#pragma once

#include <optional>
#include <string>

#include "deck/config.hpp"
#include "engine/blueprint.hpp"
#include "plan/holding.hpp"
#include "plan/time.hpp"

namespace kzero::plan {

struct Entry : Holding {
  Index threads = 1;  // per rank
  Index layers = 0;
  Index micro_batch = 0;
  Index copied_parameters = 0;  // of the last tensor rank: those that one before it owns
  deck::Recompute recompute;
  Dtype precision = Dtype::fp32;
  Index width = 0;  // of the model
  deck::ReductionOrder reduction = deck::ReductionOrder::ranks;
  std::vector<metrics::TrafficRow> traffic{};  // of one rank in one step
  Work work{};
  std::optional<Estimate> estimate{};  // none if no rates are known
  std::string machine{};               // the file that describes it; empty: none

  Index sent_bytes() const;

  /// Returns the operations of a rank per second in the estimated step, as MFU counts them, or
  /// those recomputed included. Needs the estimate.
  double model_operations_per_second() const;
  double operations_per_second() const;
};

/// The deck is resolved for its ranks; `family` replaces the model that it names.
Entry plan(const deck::Config& config, Index threads, model::Family family = model::define);

}  // namespace kzero::plan
