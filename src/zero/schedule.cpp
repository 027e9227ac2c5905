#include "zero/schedule.hpp"

#include <algorithm>
#include <map>

namespace kzero::zero {

namespace {

using param::units_of;
using param::ValueKind;

bool contains(const std::vector<Index>& units, Index unit) {
  return std::find(units.begin(), units.end(), unit) != units.end();
}

/// Units that operation `at` and the next `ahead` reading operations read, nearest first.
std::vector<Index> window(const param::Trace& trace, std::size_t at, Index ahead) {
  std::vector<Index> units;
  for (std::size_t i = at; i < trace.size(); ++i) {
    const auto reads = units_of(trace[i].reads, ValueKind::parameters);
    if (i > at && !reads.empty() && ahead-- == 0) break;
    for (const Index unit : reads) {
      if (!contains(units, unit)) units.push_back(unit);
    }
  }
  return units;
}

}  // namespace

Schedule::Schedule(const param::Trace& trace, const param::FlatLayout& layout,
                   const ScheduleOptions& options)
    : trace_(trace), moments_(trace.size()) {
  if (options.stage.parameters == Placement::partitioned)
    schedule_gathers(layout, options.prefetch_units);
  schedule_gradients(layout, options);
}

// A unit stays as long as the window of what is read soon holds it: between two uses that are
// close it is not gathered again.
void Schedule::schedule_gathers(const param::FlatLayout& layout, Index prefetch_units) {
  std::vector<Lifetime> lives;
  std::map<Index, std::size_t> live;  // unit to position in lives
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    const std::vector<Index> soon = window(trace_, i, prefetch_units);
    std::erase_if(live, [&](const auto& entry) {
      if (contains(soon, entry.first)) return false;
      moments_[i - 1].releases.push_back(entry.first);
      return true;
    });
    for (const Index unit : soon) {
      if (const auto found = live.find(unit); found != live.end()) {
        lives[found->second].last = static_cast<Index>(i);
        continue;
      }
      const auto at = static_cast<Index>(i);
      live[unit] = lives.size();
      lives.push_back({unit, at, at, layout.unit(unit).padded, 0});
    }
    moments_[i].needs = units_of(trace_[i].reads, ValueKind::parameters);
  }
  for (const auto& [unit, position] : live) moments_.back().releases.push_back(unit);
  gathered_elements_ = lay_out(lives);
  for (const Lifetime& life : lives) {
    moments_[life.first].gathers.push_back({life.unit, life.offset});
    gathers_ += layout.unit(life.unit).padded;
  }
}

void Schedule::schedule_gradients(const param::FlatLayout& layout, const ScheduleOptions& options) {
  std::vector<Lifetime> lives;
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    const auto at = static_cast<Index>(i);
    for (const Index unit : units_of(trace_[i].writes, ValueKind::gradient)) {
      const auto same = [&](const Lifetime& life) { return life.unit == unit; };
      const auto found = std::find_if(lives.begin(), lives.end(), same);
      if (found == lives.end()) {
        lives.push_back({unit, at, at, layout.unit(unit).padded, 0});
      } else {
        found->last = at;
      }
    }
  }
  for (const Lifetime& life : lives) moments_[life.last].complete.push_back(life.unit);
  if (options.stage.gradients == Placement::replicated) return;
  const auto end = static_cast<Index>(trace_.size()) - 1;
  for (Lifetime& life : lives) life.last = std::min(life.last + (options.overlap ? 1 : 0), end);
  target_elements_ = lay_out(lives);
  for (const Lifetime& life : lives)
    moments_[life.first].targets.push_back({life.unit, life.offset});
}

}  // namespace kzero::zero
