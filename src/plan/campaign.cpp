#include "plan/campaign.hpp"

#include <cmath>

#include "base/error.hpp"

namespace kzero::plan {

namespace {

/// In a mean time between failures M, checkpoints of d seconds every t seconds take d / t of the
/// time, and a failure repeats t / 2 and reads a checkpoint: lost = d / t + (t / 2 + d) / M.
std::optional<Interruptions> interruptions(const StepCost& step, Index nodes, const Site& site) {
  if (!site.node_failure_seconds || !site.storage_bytes) return std::nullopt;
  Interruptions found;
  found.between = *site.node_failure_seconds / static_cast<double>(nodes);
  found.checkpoint = static_cast<double>(step.checkpoint_bytes) / *site.storage_bytes;
  found.interval = std::sqrt(2 * found.checkpoint * found.between);
  found.lost =
      found.checkpoint / found.interval + (found.interval / 2 + found.checkpoint) / found.between;
  KZERO_REQUIRE(found.lost < 1, ExitCode::usage,
                "failures leave no time to train: one of {} nodes fails every {:.0f} s, and a "
                "checkpoint takes {:.0f} s; storage.bandwidth or node.hours_between_failures is "
                "too small",
                nodes, found.between, found.checkpoint);
  return found;
}

}  // namespace

Campaign campaign(const StepCost& step, Index nodes, const Site& site, double tokens) {
  Campaign all{.tokens = tokens, .steps = std::ceil(tokens / step.tokens), .nodes = nodes};
  all.interruptions = interruptions(step, nodes, site);
  const double lost = all.interruptions ? all.interruptions->lost : 0;
  all.seconds = all.steps * step.seconds / (1 - lost);
  if (site.node_watts) all.joules = *site.node_watts * static_cast<double>(nodes) * all.seconds;
  return all;
}

}  // namespace kzero::plan
