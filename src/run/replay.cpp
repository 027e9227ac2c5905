#include "run/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>

#include "base/checksum.hpp"
#include "engine/engine.hpp"
#include "grid/agreement.hpp"
#include "runtime/host_name.hpp"

namespace kzero::run {

namespace {

using metrics::RecordedLaunch;
using metrics::RecordedState;

/// Lists each host once, in order. Names only the first few.
std::string hosts_in_words(const std::vector<std::string>& of_ranks) {
  constexpr std::size_t max_names = 8;
  std::vector<std::string> hosts;
  std::set<std::string> seen;
  for (const std::string& host : of_ranks) {
    if (seen.insert(host).second) hosts.push_back(host);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(hosts.size(), max_names); ++i)
    text += (i > 0 ? ", " : "") + hosts[i];
  return hosts.size() > max_names ? fmt::format("{} and {} more", text, hosts.size() - max_names)
                                  : text;
}

/// The file contains null for every number that is not finite. `recorded` is then NaN.
bool is_same(double now, double recorded) {
  return std::isfinite(now) ? now == recorded : std::isnan(recorded);
}

bool shares_state(const RecordedLaunch& launch, const std::vector<RecordedState>& known) {
  const auto is_known = [&](const RecordedState& state) {
    return !state.hash.empty() && std::ranges::count(known, state) > 0;
  };
  return is_known(launch.start) || std::ranges::any_of(launch.saved, is_known);
}

}  // namespace

Replay::Replay(const deck::Config& config, const grid::Group& world,
               const std::optional<Resumed>& resumed, const std::string& bits,
               metrics::Console& console)
    : run_(config.run),
      sizes_(config.train),
      sequence_(config.model.sequence),
      world_(world),
      console_(console) {
  if (run_.replay == deck::Replay::off || run_.metrics.empty() || !resumed) return;
  if (!resumed->bit_changes.empty()) {  // resume() has printed them
    if (run_.replay == deck::Replay::check)
      console_.note("replay      is not checked, as the run does not resume bit for bit");
    return;
  }
  grid::collectively(world_, [&] {
    if (world_.is_root()) find_steps(*resumed, bits);
  });
  own_hosts_ = hosts_in_words(world_.gather(runtime::host_name()));
  last_ = world_.max(steps_.empty() ? -1 : steps_.back().step);
  if (last_ >= 0)
    console_.note(fmt::format("replay      steps {} to {} are compared with {}", resumed->step,
                              last_, run_.metrics));
  if (not_comparable_ > 0)
    console_.note(fmt::format(
        "replay      {} recorded step{} from {} on cannot be compared: settings, data, batches, "
        "arithmetic or the checkpoint differ",
        not_comparable_, not_comparable_ == 1 ? "" : "s", resumed->step));
}

/// Returns the first step of the launch whose batch had another size.
Index Replay::end_of_same_batches(const RecordedLaunch& launch) const {
  for (const metrics::RecordedStep& one : launch.steps) {
    if (one.tokens != sizes_.size(one.step) * sequence_) return one.step;
  }
  return std::numeric_limits<Index>::max();
}

/// A launch that began with or saved a known state computes the same bits as this one. All states
/// that it saved are therefore known, too.
void Replay::find_steps(const Resumed& resumed, const std::string& bits) {
  std::vector<RecordedState> known{{resumed.step, format_checksum(resumed.state)}};
  metrics::read_launches(run_.metrics, resumed.step, [&](RecordedLaunch&& launch) {
    if (launch.bits != bits || !shares_state(launch, known)) {
      not_comparable_ += std::ssize(launch.steps);
      return;
    }
    const Index end = end_of_same_batches(launch);
    std::ranges::copy_if(launch.saved, std::back_inserter(known),
                         [&](const RecordedState& state) { return state.step <= end; });
    const auto is_other = [&](const metrics::RecordedStep& one) { return one.step >= end; };
    not_comparable_ += std::erase_if(launch.steps, is_other);
    if (launch.steps.empty()) return;
    for (const metrics::RecordedStep& one : launch.steps)
      steps_.push_back({one.step, one.loss, one.grad_norm, hosts_of_.size()});
    hosts_of_.push_back(hosts_in_words(launch.hosts));
  });
  std::ranges::stable_sort(steps_, {}, &Recorded::step);
}

void Replay::compare(Index step, const engine::StepResult& result) {
  if (step > last_) return;
  std::string problem = difference(step, result);
  if (run_.replay == deck::Replay::check) {
    problem = world_.broadcast(problem);
    if (!problem.empty())
      throw engine::Mismatch("replay",
                             problem +
                                 ". Start the run again: a third result shows which of the two "
                                 "was wrong. run.replay = \"note\" continues with this one");
  }
  if (!problem.empty()) {
    console_.note("warning     " + problem);
    last_ = -1;
  } else if (step == last_) {
    console_.note(fmt::format("replay      the steps up to {} came out as recorded", step));
  }
}

/// Describes on the root how the result differs from all records of the step. Empty if any record
/// is equal or there is none.
std::string Replay::difference(Index step, const engine::StepResult& result) {
  const auto begin = std::ranges::lower_bound(steps_, step, {}, &Recorded::step);
  const auto end = std::ranges::upper_bound(steps_, step, {}, &Recorded::step);
  std::vector<Recorded> differing;
  std::copy_if(begin, end, std::back_inserter(differing), [&](const Recorded& one) {
    return !is_same(result.loss, one.loss) || !is_same(result.grad_norm, one.grad_norm);
  });
  if (differing.empty()) return "";
  if (std::ssize(differing) < end - begin) {
    note_others(step, differing);
    return "";
  }
  const Recorded& newest = differing.back();
  return fmt::format(
      "run.replay: step {} came out differently: loss {}, recorded {}; grad_norm {}, recorded {} "
      "(in {}). It ran on {}, and before on {}: a node computed wrongly now or then",
      step, result.loss, newest.loss, result.grad_norm, newest.grad_norm, run_.metrics, own_hosts_,
      hosts_of_[newest.launch]);
}

/// Reports, at most once, that this launch agrees with an earlier one and another one differs.
void Replay::note_others(Index step, const std::vector<Recorded>& differing) {
  if (noted_others_) return;
  noted_others_ = true;
  console_.note(fmt::format(
      "replay      step {} agrees with an earlier launch; another one, on {}, had loss "
      "{} and grad_norm {}: a node of it computed wrongly",
      step, hosts_of_[differing.back().launch], differing.back().loss, differing.back().grad_norm));
}

}  // namespace kzero::run
