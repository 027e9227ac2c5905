// Compares steps that a restart repeats (run.replay) with their losses and norms from the previous
// launch in the metrics file. They must come out the same. A difference is a node's fault, then or
// now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "grid/group.hpp"
#include "metrics/console.hpp"
#include "run/checkpoints.hpp"

namespace kzero::run {

class Replay {
 public:
  /// Finds the recorded steps that this launch can be compared with. Their launches must have the
  /// same `bits` (bits_digest(), as text). They must also have had the state from which this launch
  /// resumes, or a state that such a launch saved later. Call this before this launch's own start
  /// is recorded. Notes on the console what is compared, and what is not and why. Throws
  /// Error(files). Collective over `world`. All arguments must outlive the object.
  Replay(const deck::Config& config, const grid::Group& world,
         const std::optional<Resumed>& resumed, const std::string& bits, metrics::Console& console);

  /// Compares a step of this launch. A result equal to any recorded one counts as right. Otherwise,
  /// "note" prints a warning and ends the comparison, and "check" throws Mismatch on every rank.
  /// Collective over the world.
  void compare(Index step, const engine::StepResult& result);

 private:
  /// A step of an earlier launch.
  struct Recorded {
    Index step;
    double loss, grad_norm;
    std::size_t launch;
  };

  void find_steps(const Resumed& resumed, const std::string& bits);
  std::string difference(Index step, const engine::StepResult& result);
  void note_others(Index step, const std::vector<Recorded>& differing);

  const deck::Run& run_;
  const grid::Group& world_;
  metrics::Console& console_;
  Index last_ = -1;  // last step to compare
  // On the root only:
  std::vector<Recorded> steps_;        // in order
  std::vector<std::string> hosts_of_;  // hosts of each launch, as text
  std::string own_hosts_;
  Index not_comparable_ = 0;  // recorded steps
  bool noted_others_ = false;
};

}  // namespace kzero::run
