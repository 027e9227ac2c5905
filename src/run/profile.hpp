// The time line of a run (run.profile). Every rank records it during some steps. The root then
// writes it as one file.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/timeline.hpp"
#include "deck/config.hpp"
#include "grid/clocks.hpp"
#include "metrics/console.hpp"
#include "runtime/profile.hpp"

namespace kzero::run {

class Profile {
 public:
  /// `room` is the memory for this rank's spans. All references must outlive the object.
  Profile(const deck::Run& run, const grid::Group& world, std::span<SpanRecord> room,
          metrics::Console& console);

  /// Returns the line about the time line that the run prints at its start.
  std::string announcement(Index first_step) const;

  /// Starts recording before the first profiled step, and writes the time line after the last one.
  /// Collective over all ranks.
  void before_step(Index step);

  /// Writes the time line if the run ends while recording. A file that cannot be written causes a
  /// warning only, because the training is worth more. Collective over all ranks.
  void finish();

 private:
  void write(Index last_step);

  const deck::Run& run_;
  const deck::StepRange steps_;
  const grid::Group& world_;
  const std::span<SpanRecord> room_;
  metrics::Console& console_;
  Index first_ = -1;  // first recorded step; -1: none yet
  Index step_ = -1;   // the step that began last
  grid::ClockOffset offset_;
  std::optional<runtime::KernelSpans> kernels_;  // while recording
};

}  // namespace kzero::run
