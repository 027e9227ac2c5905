#include "zero/schedule.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "param/flat_layout.hpp"

namespace kzero::zero {

namespace {

using param::units_of;
using param::ValueKind;

/// A window that moves along the trace. It contains one operation and at most `ahead` later
/// operations that read units. It counts how often they read each unit.
class Window {
 public:
  /// `reads` lists the units of every operation. The window starts before the first operation.
  Window(const std::vector<std::vector<Index>>& reads, std::size_t units, Index ahead)
      : reads_(reads), uses_(units), ahead_(ahead) {}

  /// Moves the front to operation `front`. Returns the units that enter the window, nearest first.
  /// Earlier operations stay until leave().
  std::vector<Index> reach(std::size_t front) {
    if (end_ > front && !reads_[front].empty()) --after_front_;  // it becomes the front
    std::vector<Index> entered;
    for (; end_ < reads_.size(); ++end_) {
      if (end_ > front && !reads_[end_].empty()) {
        if (after_front_ == ahead_) break;
        ++after_front_;
      }
      for (const Index unit : reads_[end_]) {
        if (uses_[unit]++ == 0) entered.push_back(unit);
      }
    }
    return entered;
  }

  /// Drops operation `front`. Returns the units that no operation left in the window reads, in
  /// ascending order.
  std::vector<Index> leave(std::size_t front) {
    std::vector<Index> left;
    for (const Index unit : reads_[front]) {
      if (--uses_[unit] == 0) left.push_back(unit);
    }
    std::ranges::sort(left);
    return left;
  }

 private:
  const std::vector<std::vector<Index>>& reads_;
  std::vector<Index> uses_;        // by unit
  Index ahead_, after_front_ = 0;  // reading operations after the front: maximum and current
  std::size_t end_ = 0;
};

}  // namespace

Schedule::Schedule(const param::Trace& trace, const param::FlatLayout& layout,
                   const ScheduleOptions& options)
    : trace_(trace), steps_(trace.size()) {
  for (std::size_t i = 0; i < trace_.size(); ++i)
    steps_[i].needs = units_of(trace_[i].reads, ValueKind::parameters);
  if (options.stage.gathers_parameters()) schedule_gathers(layout, options.prefetch_units);
  schedule_gradients(layout, options);
}

// A unit stays gathered while the window of upcoming reads contains it. Nearby uses then share one
// gather.
void Schedule::schedule_gathers(const param::FlatLayout& layout, Index prefetch_units) {
  std::vector<std::vector<Index>> reads;
  for (const ScheduleStep& step : steps_) reads.push_back(step.needs);
  std::vector<Lifetime> lives;
  std::vector<std::size_t> live(layout.units().size());  // position in lives, by unit
  Window window(reads, live.size(), prefetch_units);
  const auto release_after = [&](std::size_t i) {
    steps_[i].releases = window.leave(i);
    for (const Index unit : steps_[i].releases) lives[live[unit]].last = static_cast<Index>(i);
  };
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    const auto at = static_cast<Index>(i);
    const std::vector<Index> entered = window.reach(i);
    if (i > 0) release_after(i - 1);
    for (const Index unit : entered) {
      live[unit] = lives.size();
      lives.push_back({unit, at, at, layout.unit(unit).padded, 0});
    }
  }
  release_after(trace_.size() - 1);
  gathered_elements_ = assign_offsets(lives);
  for (const Lifetime& life : lives) {
    steps_[life.first].gathers.push_back({life.unit, life.offset});
    gathers_ += layout.unit(life.unit).padded;
  }
}

void Schedule::schedule_gradients(const param::FlatLayout& layout, const ScheduleOptions& options) {
  std::vector<Lifetime> lives;
  std::map<Index, std::size_t> position;  // position in lives, by unit
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    const auto at = static_cast<Index>(i);
    for (const Index unit : units_of(trace_[i].writes, ValueKind::gradient)) {
      const auto [found, is_first] = position.try_emplace(unit, lives.size());
      if (is_first) lives.push_back({unit, at, at, layout.unit(unit).padded, 0});
      lives[found->second].last = at;
    }
  }
  for (const Lifetime& life : lives) steps_[life.last].complete.push_back(life.unit);
  if (options.stage.gradients == Placement::replicated && !options.has_targets) return;
  const auto end = static_cast<Index>(trace_.size()) - 1;
  for (Lifetime& life : lives) life.last = std::min(life.last + (options.overlap ? 1 : 0), end);
  target_elements_ = assign_offsets(lives);
  for (const Lifetime& life : lives) steps_[life.first].targets.push_back({life.unit, life.offset});
}

namespace {

/// Returns the lowest offset at which `elements` fit between the values in `taken`, sorted by
/// offset.
Index lowest_place(const std::vector<Lifetime>& taken, Index elements) {
  Index offset = 0;
  for (const Lifetime& other : taken) {
    if (offset + elements <= other.offset) break;
    offset = std::max(offset, other.offset + other.elements);
  }
  return offset;
}

}  // namespace

Index assign_offsets(std::vector<Lifetime>& values) {
  Index total = 0, last = 0;
  for (Lifetime& value : values) {
    value.elements = round_up(value.elements, param::shard_alignment);
    last = std::max(last, value.last);
  }
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return values[a].elements > values[b].elements;
  });
  // Most lifetimes are short. Values with short lifetimes are indexed by their first operation.
  constexpr Index short_life = 64;
  std::vector<std::vector<std::size_t>> placed(last + 1);
  std::vector<std::size_t> long_lived;
  for (const std::size_t i : order) {
    Lifetime& value = values[i];
    std::vector<Lifetime> taken;
    const auto take = [&](std::size_t other) {
      if (values[other].first <= value.last && value.first <= values[other].last)
        taken.push_back(values[other]);
    };
    for (Index at = std::max<Index>(0, value.first - short_life); at <= value.last; ++at)
      std::ranges::for_each(placed[at], take);
    std::ranges::for_each(long_lived, take);
    (value.last - value.first > short_life ? long_lived : placed[value.first]).push_back(i);
    std::sort(taken.begin(), taken.end(),
              [](const Lifetime& a, const Lifetime& b) { return a.offset < b.offset; });
    value.offset = lowest_place(taken, value.elements);
    total = std::max(total, value.offset + value.elements);
  }
  return total;
}

}  // namespace kzero::zero
