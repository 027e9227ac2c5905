// The cost of training on a number of tokens: time, node-hours, energy, and the share that failures
// and checkpoints take. The interval between checkpoints is Young's (Comm. ACM 17(9), 1974), the
// first order of Daly's (FGCS 22(3), 2006).
#pragma once

#include <optional>

#include "base/types.hpp"

namespace kzero::plan {

/// Optional values of a machine's file about its nodes and storage. Estimates that need a missing
/// value are left out.
struct Site {
  std::optional<double> node_watts{};
  std::optional<double> node_failure_seconds{};  // mean time between two failures of a node
  std::optional<double> storage_bytes{};  // that a job writes or reads per second, all its ranks
};

/// A step of a launch, and the bytes of its checkpoints.
struct StepCost {
  double seconds = 0;
  double tokens = 0;
  Index checkpoint_bytes = 0;
};

struct Interruptions {
  double between = 0;     // mean seconds between two failures of any of the launch's nodes
  double checkpoint = 0;  // seconds to write one, and to read it
  double interval = 0;    // seconds between two checkpoints: sqrt(2 * checkpoint * between)
  double lost = 0;        // share of the time: checkpoints, repeated steps, reading
};

struct Campaign {
  double tokens = 0;
  double steps = 0;
  Index nodes = 1;
  double seconds = 0;  // with what interruptions cost
  std::optional<double> joules{};
  std::optional<Interruptions> interruptions{};

  double node_hours() const { return static_cast<double>(nodes) * seconds / 3600; }
  double failures() const { return interruptions ? seconds / interruptions->between : 0; }
};

/// Estimates a campaign. Throws Error(usage) if failures leave no time to train.
Campaign campaign(const StepCost& step, Index nodes, const Site& site, double tokens);

}  // namespace kzero::plan
