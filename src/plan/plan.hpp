// The plan of a deck on a grid of ranks: memory, traffic and time per step. Plan and run use the
// same functions and therefore have the same numbers: engine::planned_bytes constructs the buffers,
// engine::expected_traffic computes the traffic. Planning allocates nothing and needs neither MPI
// nor Kokkos.
#pragma once

#include <optional>
#include <string>

#include "deck/config.hpp"
#include "engine/blueprint.hpp"
#include "plan/campaign.hpp"
#include "plan/footprint.hpp"
#include "plan/step_outline.hpp"
#include "plan/time.hpp"

namespace kzero::plan {

/// What differs in a phase of the run (train.phase).
struct PlannedPhase {
  Index first_step = 0;
  Index steps = 0;
  Index sequences = 0;      // of a batch
  Index micro_batches = 0;  // of all ranks in a step
  Index rounds = 0;         // micro-batches of a rank in a step, at most
  Index total_bytes = 0;    // that a rank would need for this phase alone
  Index sent_bytes = 0;     // of one rank per step
};

struct Entry : Footprint {
  Index threads = 1;  // per rank
  Index layers = 0;
  Index sequence = 0;
  Index micro_batch = 0;
  Index trained_parameters = 0;  // of the full model: all, or those of adapters
  Index frozen_bytes = 0;        // of the parameters that a rank holds and that do not train
  Index copied_parameters = 0;   // parameters of the last tensor rank that a lower rank owns
  deck::Recompute recompute;
  Dtype precision = Dtype::fp32;
  Index width = 0;                             // of the model
  Index tokens = 0;                            // per step of the first phase, of all ranks
  double run_tokens = 0;                       // of all steps
  std::vector<PlannedPhase> phases{};          // of a run whose batch changes; otherwise empty
  Index nccl_bytes = 0;                        // an estimate, not part of `memory`
  Index checkpoint_bytes = 0;                  // master weights and optimizer states, of all ranks
  std::vector<metrics::TrafficRow> traffic{};  // of one rank per step
  Work work{};
  std::vector<StepOutline> outlines{};  // of the step, on ranks that may be the slowest
  std::optional<Estimate> estimate{};   // empty if no rates are known
  std::string machine{};                // the file that describes it; empty if none
  std::optional<Campaign> campaign{};   // empty if no number of tokens is given
  std::string keeps_sums{};             // "node" or "rank", or empty: nothing to keep
  Index teacher_bytes = 0;              // of distill.file for each token of the data; 0: none
  std::vector<std::string> notes{};     // on the estimate
  std::string shortage{};  // why a rank's memory is too small; empty: it fits, or is not known
  std::string refusal{};   // why this launch cannot be planned: only its ranks are set; or empty

  Index sent_bytes() const;

  /// The bytes of distill.file for the tokens of all steps.
  double teacher_file_bytes() const { return static_cast<double>(teacher_bytes) * run_tokens; }

  /// The rows of a micro-batch that a rank computes together.
  Index rows() const { return micro_batch * sequence / sequence_ranks; }

  /// Returns a rank's operations per second in the estimated step, as counted by MFU or including
  /// recomputation. Needs the estimate.
  double model_operations_per_second() const;
  double operations_per_second() const;

  /// Returns the tokens per second of all ranks, and of one. Needs the estimate.
  double tokens_per_second() const;
  double tokens_per_second_and_rank() const;
};

/// The deck must be resolved for its ranks. `family` replaces the model that the deck names.
Entry plan(const deck::Config& config, Index threads, model::Family family = model::define);

}  // namespace kzero::plan
