#include "zero/schedule.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace kzero::zero {

namespace {

using param::units_of;
using param::ValueKind;

/// The units that operation `at` and the next `ahead` reading operations read, nearest first.
/// `reads` has an entry per operation. `window_of` is set to at + 1 for each unit found, so that
/// none is found twice and the caller can test for one.
std::vector<Index> window(const std::vector<std::vector<Index>>& reads, std::size_t at, Index ahead,
                          std::vector<std::size_t>& window_of) {
  std::vector<Index> units;
  for (std::size_t i = at; i < reads.size(); ++i) {
    if (i > at && !reads[i].empty() && ahead-- == 0) break;
    for (const Index unit : reads[i]) {
      if (std::exchange(window_of[unit], at + 1) != at + 1) units.push_back(unit);
    }
  }
  return units;
}

}  // namespace

Schedule::Schedule(const param::Trace& trace, const param::FlatLayout& layout,
                   const ScheduleOptions& options)
    : trace_(trace), steps_(trace.size()) {
  if (options.stage.parameters == Placement::partitioned)
    schedule_gathers(layout, options.prefetch_units);
  schedule_gradients(layout, options);
}

// A unit stays gathered as long as the window of upcoming reads contains it: between two uses that
// are close together it is not gathered again.
void Schedule::schedule_gathers(const param::FlatLayout& layout, Index prefetch_units) {
  constexpr std::size_t nowhere = -1;
  std::vector<Lifetime> lives;
  std::vector<std::size_t> live(layout.units().size(), nowhere);  // of each unit: position in lives
  std::set<Index> gathered;                                       // units that are gathered now
  std::vector<std::size_t> window_of(layout.units().size());
  for (std::size_t i = 0; i < trace_.size(); ++i)
    steps_[i].needs = units_of(trace_[i].reads, ValueKind::parameters);
  std::vector<std::vector<Index>> reads;
  for (const ScheduleStep& step : steps_) reads.push_back(step.needs);
  const auto release_unless = [&](ScheduleStep& step, const auto& is_needed) {
    std::erase_if(gathered, [&](Index unit) {
      if (is_needed(unit)) return false;
      step.releases.push_back(unit);
      live[unit] = nowhere;
      return true;
    });
  };
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    const std::vector<Index> soon = window(reads, i, prefetch_units, window_of);
    if (i > 0) release_unless(steps_[i - 1], [&](auto unit) { return window_of[unit] == i + 1; });
    const auto at = static_cast<Index>(i);
    for (const Index unit : soon) {
      if (live[unit] == nowhere) {
        live[unit] = lives.size();
        gathered.insert(unit);
        lives.push_back({unit, at, at, layout.unit(unit).padded, 0});
      }
      lives[live[unit]].last = at;
    }
  }
  release_unless(steps_.back(), [](auto) { return false; });
  gathered_elements_ = assign_offsets(lives);
  for (const Lifetime& life : lives) {
    steps_[life.first].gathers.push_back({life.unit, life.offset});
    gathers_ += layout.unit(life.unit).padded;
  }
}

void Schedule::schedule_gradients(const param::FlatLayout& layout, const ScheduleOptions& options) {
  std::vector<Lifetime> lives;
  std::map<Index, std::size_t> position;  // of each unit in lives
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    const auto at = static_cast<Index>(i);
    for (const Index unit : units_of(trace_[i].writes, ValueKind::gradient)) {
      const auto [found, is_first] = position.try_emplace(unit, lives.size());
      if (is_first) lives.push_back({unit, at, at, layout.unit(unit).padded, 0});
      lives[found->second].last = at;
    }
  }
  for (const Lifetime& life : lives) steps_[life.last].complete.push_back(life.unit);
  if (options.stage.gradients == Placement::replicated) return;
  const auto end = static_cast<Index>(trace_.size()) - 1;
  for (Lifetime& life : lives) life.last = std::min(life.last + (options.overlap ? 1 : 0), end);
  target_elements_ = assign_offsets(lives);
  for (const Lifetime& life : lives) steps_[life.first].targets.push_back({life.unit, life.offset});
}

}  // namespace kzero::zero
