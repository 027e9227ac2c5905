// The time line of a run (run.profile): recorded on every rank during some steps, then written by
// the root as one file.
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
  /// `room` is the memory of this rank's spans. All references must outlive the object.
  Profile(const deck::Run& run, const grid::Group& world, std::span<SpanRecord> room,
          metrics::Console& console);

  /// The line that the run prints of the time line at its start.
  std::string announcement(Index first_step) const;

  /// Starts recording before the first of its steps, and writes what was recorded after the last.
  /// Collective over all ranks.
  void before_step(Index step);

  /// Writes the time line of a run that ends before the last of its steps, or after it. A file that
  /// cannot be written is a warning: the training is worth more. Collective over all ranks.
  void finish();

 private:
  void write(Index last_step);

  const deck::Run& run_;
  const deck::StepRange steps_;
  const grid::Group& world_;
  const std::span<SpanRecord> room_;
  metrics::Console& console_;
  Index first_ = -1;  // recorded step; -1: none yet
  Index step_ = -1;   // that was begun last
  grid::ClockOffset offset_;
  std::optional<runtime::KernelSpans> kernels_;  // while recording
};

}  // namespace kzero::run
