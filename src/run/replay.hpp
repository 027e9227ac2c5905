// Checks the steps that a restart repeats (run.replay). The metrics file contains their losses and
// norms from earlier launches. The repeated steps must give the same values. A difference means
// that a node computed wrongly then or now.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/batch_sizes.hpp"
#include "engine/engine.hpp"
#include "grid/group.hpp"
#include "metrics/console.hpp"
#include "metrics/recorded_launches.hpp"
#include "run/checkpoints.hpp"

namespace kzero::run {

class Replay {
 public:
  /// Finds the recorded steps that can be compared with this launch. A recorded launch is
  /// comparable if it has the same `bits` (bits_digest() as text) and began with or saved the state
  /// that this launch resumes, or a state that another comparable launch saved. It is comparable
  /// until the first step whose batch had another size than in `config`. Call it before this
  /// launch records its own start. Prints what is compared, and what is not and why. Throws
  /// Error(files). Collective over `world`. `config`, `world` and `console` must outlive the
  /// object.
  Replay(const deck::Config& config, const grid::Group& world,
         const std::optional<Resumed>& resumed, const std::string& bits, metrics::Console& console);

  /// Compares a step of this launch. The result is correct if it equals that of any comparable
  /// launch. Otherwise "note" prints a warning and ends the comparison, and "check" throws Mismatch
  /// on every rank. Collective over the world.
  void compare(Index step, const engine::StepResult& result);

 private:
  /// A step of an earlier launch.
  struct Recorded {
    Index step;
    double loss, grad_norm;
    std::size_t launch;
  };

  Index end_of_same_batches(const metrics::RecordedLaunch& launch) const;
  void find_steps(const Resumed& resumed, const std::string& bits);
  std::string difference(Index step, const engine::StepResult& result);
  void note_others(Index step, const std::vector<Recorded>& differing);

  const deck::Run& run_;
  const data::BatchSizes sizes_;
  const Index sequence_;  // tokens
  const grid::Group& world_;
  metrics::Console& console_;
  Index last_ = -1;  // the last step to compare
  // On the root only:
  std::vector<Recorded> steps_;        // in order
  std::vector<std::string> hosts_of_;  // the hosts of each launch as text
  std::string own_hosts_;
  Index not_comparable_ = 0;  // recorded steps
  bool noted_others_ = false;
};

}  // namespace kzero::run
