// The time line of a run (run.profile). Every rank records it during some steps, then the root
// writes it to one file.
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

  /// Returns the run's initial line about the time line.
  std::string announcement(Index first_step) const;

  /// Starts recording before the first of its steps, and writes the recording after the last.
  /// Collective over all ranks.
  void before_step(Index step);

  /// Writes the time line of a run that ends early or after its last step. A file that cannot be
  /// written is only a warning, because the training is worth more. Collective over all ranks.
  void finish();

 private:
  void write(Index last_step);

  const deck::Run& run_;
  const deck::StepRange steps_;
  const grid::Group& world_;
  const std::span<SpanRecord> room_;
  metrics::Console& console_;
  Index first_ = -1;  // recorded step; -1: none
  Index step_ = -1;   // the last step begun
  grid::ClockOffset offset_;
  std::optional<runtime::KernelSpans> kernels_;  // while recording
};

}  // namespace kzero::run
