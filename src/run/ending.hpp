// How a run ends: decides on all ranks alike whether it stops, because a signal may reach only one
// rank, and reports the end to people and to job scripts. Launchers lose exit codes, hence the
// file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"
#include "metrics/records.hpp"
#include "run/node_times.hpp"
#include "runtime/agreement_pace.hpp"
#include "runtime/stop_signal.hpp"

namespace kzero::run {

/// Returns run.end_file if set, otherwise end.json in checkpoint.folder. Empty if neither is set.
std::filesystem::path end_file(const deck::Config& config);

/// Returns the last line of a run that stopped before its last step: the reason and what to do.
std::string stop_text(const metrics::EndRecord& record, const deck::Config& config);

/// Replaces the end file by one line of JSON: reason, signal, exit_code, steps. Does nothing
/// without an end file. Throws Error(files).
void write_end_file(const metrics::EndRecord& record, const deck::Config& config);

/// Removes the end file of an earlier run. Throws Error(files).
void remove_end_file(const deck::Config& config);

/// The reason why a run makes no further step.
struct Ending {
  std::string reason = "completed";   // as in the end record
  int signal = 0;                     // the signal that asked for it; 0: none
  std::optional<ExitCode> failure{};  // nullopt: the exit code follows from the reason

  /// Returns whether nothing is left to do.
  bool is_complete() const { return reason == "completed" || reason == "nothing_to_do"; }
};

class StopAgreement {
 public:
  /// All arguments must outlive the object.
  StopAgreement(const deck::Run& run, const grid::Group& world, const runtime::StopSignal& stop,
                NodeTimes& times);

  /// Agrees after a step, using NodeTimes::agree(), which every step calls. Collective over
  /// `world`.
  std::optional<Ending> after_step(Index steps_of_this_job);

  /// Counts a round of micro-batches that an evaluation is about to begin. Returns whether the
  /// ranks agree before the round, which is the same on all ranks. They agree before every round if
  /// rounds take 50 ms or more. Not collective by itself.
  bool is_due_within_evaluation() { return pace_.is_due(); }

  /// Agrees before a round, using one control message. All ranks of `world` therefore stop at the
  /// same micro-batch. run.max_steps counts only steps, so it does not stop evaluations. Collective
  /// over `world`.
  std::optional<Ending> within_evaluation();

 private:
  const deck::Run& run_;
  const grid::Group& world_;
  const runtime::StopSignal& stop_;
  NodeTimes& times_;
  runtime::AgreementPace pace_;  // within evaluations
};

}  // namespace kzero::run
