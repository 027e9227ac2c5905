// Decides, for all ranks alike, that a run makes no further step. A signal may reach one rank only.
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"
#include "run/node_times.hpp"
#include "runtime/agreement_pace.hpp"
#include "runtime/stop_signal.hpp"

namespace kzero::run {

/// The reason why a run makes no further step.
struct Ending {
  std::string reason = "completed";   // as in the end record
  int signal = 0;                     // the signal that asked for it; 0: none
  std::optional<ExitCode> failure{};  // none: the exit code follows from the reason

  /// Whether nothing is left to do.
  bool is_complete() const { return reason == "completed" || reason == "nothing_to_do"; }
};

class StopAgreement {
 public:
  /// All arguments must outlive the object.
  StopAgreement(const deck::Run& run, const grid::Group& world, const runtime::StopSignal& stop,
                NodeTimes& times);

  /// Agrees after a step, with the message that every step has. Collective over `world`.
  std::optional<Ending> after_step(Index steps_of_this_job);

  /// Counts a round of micro-batches of an evaluation that is about to begin; returns whether the
  /// ranks agree before it, the same on all of them. Rounds of 50 ms and more all have an
  /// agreement. Not collective by itself.
  bool is_due_within_evaluation() { return pace_.is_due(); }

  /// Agrees there, with one control message. All ranks of `world` therefore stop at the same
  /// micro-batch. run.max_steps counts steps alone, so it stops no evaluation. Collective over
  /// `world`.
  std::optional<Ending> within_evaluation();

 private:
  const deck::Run& run_;
  const grid::Group& world_;
  const runtime::StopSignal& stop_;
  NodeTimes& times_;
  runtime::AgreementPace pace_;  // of evaluations
};

}  // namespace kzero::run
