#include "run/slow_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace kzero::run {

namespace {

constexpr Index intervals_to_change = 2;
constexpr std::size_t max_lines = 3;  // of one interval

// A rank lacks cores only if it computes longer than the others by this factor.
constexpr double slower_without_core = 1.25;

/// Returns the median of ascending values, of which one value `without` is left out. If an even
/// number remains, it is the larger of the two middle ones: a value that half of the others exceed
/// is not slow.
double median_of_others(const std::vector<double>& ascending, double without) {
  const std::size_t others = ascending.size() - 1, middle = others / 2;
  const auto own =
      static_cast<std::size_t>(std::ranges::lower_bound(ascending, without) - ascending.begin());
  return ascending[middle < own ? middle : middle + 1];
}

}  // namespace

SlowNodes::SlowNodes(const NodeGroups& groups, std::vector<double> operations, double share)
    : groups_(groups),
      operations_(std::move(operations)),
      share_(share),
      states_(groups.groups().size()) {}

std::vector<bool> SlowNodes::slow() const {
  std::vector<bool> slow;
  for (const State& state : states_) slow.push_back(state.slow);
  return slow;
}

/// Returns the seconds of all groups in ascending order. Scales up those with fewer operations to
/// `operations`.
std::vector<double> SlowNodes::seconds_scaled(const std::vector<Finding>& found,
                                              double operations) const {
  std::vector<double> seconds;
  seconds.reserve(found.size());
  for (const Finding& finding : found)
    seconds.push_back(finding.seconds * std::max(1.0, operations / operations_[finding.busiest]));
  std::ranges::sort(seconds);
  return seconds;
}

/// Returns the seconds without a core in excess of the others'; 0 unless the rank also computes
/// longer.
double SlowNodes::Finding::more_without_core() const {
  return seconds > slower_without_core * others ? std::max(0.0, no_core - others_no_core) : 0;
}

std::vector<SlowNodes::Finding> SlowNodes::busiest(std::span<const RankTime> times) const {
  std::vector<Finding> found(states_.size());
  for (std::size_t g = 0; g < found.size(); ++g) {
    const Index rank = busiest_rank(groups_.groups()[g], times);
    const RankTime& time = times[rank];
    found[g] = {.group = g, .busiest = rank, .seconds = time.computed(), .no_core = time.no_core};
  }
  return found;
}

/// Fills in `others`, `others_no_core` and `waited`.
void SlowNodes::compare(std::vector<Finding>& found, double mean_seconds) const {
  const std::vector<double> all = seconds_scaled(found, 0);
  std::vector<double> no_core;
  no_core.reserve(found.size());
  for (const Finding& finding : found) no_core.push_back(finding.no_core);
  std::ranges::sort(no_core);
  std::map<double, std::vector<double>> by_operations;  // only for the few groups that may be slow
  for (Finding& finding : found) {
    const auto compare_with = [&](const std::vector<double>& seconds) {
      finding.others = median_of_others(seconds, finding.seconds);
      const double more = finding.more_computed() + finding.more_without_core();
      finding.waited = mean_seconds > 0 ? more / mean_seconds : 0;
    };
    finding.others_no_core = median_of_others(no_core, finding.no_core);
    compare_with(all);
    if (finding.waited <= share_ / 2) continue;
    const double operations = operations_[finding.busiest];
    std::vector<double>& scaled = by_operations[operations];
    if (scaled.empty()) scaled = seconds_scaled(found, operations);
    compare_with(scaled);
  }
}

std::vector<SlowNodes::Finding> SlowNodes::findings(std::span<const RankTime> times) const {
  double mean = 0;
  for (const RankTime& time : times) mean += time.seconds / static_cast<double>(times.size());
  std::vector<Finding> found = busiest(times);
  compare(found, mean);
  for (Finding& finding : found) {
    const auto busy = [&](Index rank) {
      const RankTime& time = times[rank];
      return time.computed() + time.no_core;
    };
    const double shortest =
        busy(*std::ranges::min_element(groups_.groups()[finding.group].ranks, {}, busy));
    finding.is_one = shortest - finding.others - finding.others_no_core < 0.5 * share_ * mean;
  }
  return found;
}

std::vector<std::string> SlowNodes::judge(std::span<const RankTime> times, Index steps) {
  if (share_ <= 0 || states_.size() < 2) return {};
  std::vector<Finding> found = findings(times);
  std::ranges::stable_sort(found, std::ranges::greater{}, &Finding::waited);
  std::vector<std::string> lines;
  for (const Finding& finding : found) {
    State& state = states_[finding.group];
    const bool differs = state.slow ? finding.waited < share_ / 2 : finding.waited > share_;
    state.in_row = differs ? state.in_row + 1 : 0;
    if (state.in_row < intervals_to_change) continue;
    state = {!state.slow, 0};
    lines.push_back(state.slow ? slow_line(finding, steps) : quick_line(finding, steps));
  }
  if (lines.size() > max_lines) {
    const std::size_t more = lines.size() - max_lines;
    lines.resize(max_lines);
    lines.push_back(fmt::format("{} further {} have become slow, or are no longer slow", more,
                                groups_.by_rank() ? "ranks" : "nodes"));
  }
  return lines;
}

std::string SlowNodes::name(const Finding& finding) const {
  const NodeGroup& group = groups_.groups()[finding.group];
  if (groups_.by_rank()) return fmt::format("rank {}", finding.busiest);
  if (group.ranks.size() > 1 && finding.is_one)
    return fmt::format("rank {} on node {}", finding.busiest, group.host);
  return fmt::format("node {}", group.host);
}

std::string SlowNodes::slow_line(const Finding& finding, Index steps) const {
  const auto step = [&](double seconds) {
    return metrics::format_step_seconds(seconds / static_cast<double>(steps));
  };
  std::string cause;
  if (finding.more_without_core() > finding.more_computed()) {
    cause = fmt::format("; it had no core for {} of its waits, the others for {}",
                        step(finding.no_core), step(finding.others_no_core));
  }
  return fmt::format(
      "{} is slow: the other {} waited for it {:.0f} % of the last {} steps (it computes {} a "
      "step, the others {}{})",
      name(finding), groups_.by_rank() ? "ranks" : "nodes", 100 * finding.waited, steps,
      step(finding.seconds), step(finding.others), cause);
}

std::string SlowNodes::quick_line(const Finding& finding, Index steps) const {
  using metrics::format_step_seconds;
  const auto count = static_cast<double>(steps);
  const NodeGroup& group = groups_.groups()[finding.group];
  return fmt::format("{} is no longer slow: it computes {} a step, the others {}",
                     groups_.by_rank() ? fmt::format("rank {}", finding.busiest)
                                       : fmt::format("node {}", group.host),
                     format_step_seconds(finding.seconds / count),
                     format_step_seconds(finding.others / count));
}

}  // namespace kzero::run
