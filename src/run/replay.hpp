// Steps that a restart repeats (run.replay): the metrics file has their losses and norms
// from the launch before, which must come out the same. A difference is a fault of a node then or
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
  /// Finds the recorded steps with which this launch's can be compared: those of launches with the
  /// same `bits` (bits_digest(), as text) that had the state from which this one goes on, or a
  /// state that one of these saved later. Call it before this launch's own start is recorded. Notes
  /// on the console what is compared, and what is not and why. Throws Error(files). Collective over
  /// `world`, which must outlive the object like the other arguments.
  Replay(const deck::Config& config, const grid::Group& world,
         const std::optional<Resumed>& resumed, const std::string& bits, metrics::Console& console);

  /// Compares a step of this launch. A result that any of the launches had is taken for right. For
  /// another, "note" prints a warning and compares no more, "check" throws Mismatch on every rank.
  /// Collective over the world.
  void compare(Index step, const engine::StepResult& result);

 private:
  /// A step of one of the launches before.
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
  Index last_ = -1;  // the last step to compare
  // On the root alone:
  std::vector<Recorded> steps_;        // in order
  std::vector<std::string> hosts_of_;  // the hosts of each launch in words
  std::string own_hosts_;
  Index not_comparable_ = 0;  // recorded steps
  bool noted_others_ = false;
};

}  // namespace kzero::run
