// Times an operation on a machine that may be busy.
#pragma once

#include <algorithm>
#include <vector>

#include "base/types.hpp"

namespace kzero::plan {

/// Seconds of the fastest run, and how many times as long the median run took.
struct Timing {
  double seconds = 0;
  double spread = 1;
};

/// What counts as the time of a run. That of this thread's core does not grow while other programs
/// have the core, but it does not see other threads either.
enum class Clock { wall, core };

/// Seconds of a clock, from some time on.
double now(Clock clock);

/// Which runs are repeated for how long. Times that other programs lengthen do not agree, so a busy
/// machine gets more runs.
struct Patience {
  double enough = 0;     // faster runs are too short to be of use; three of them end the attempt
  double longest = 1.5;  // seconds of all runs
};

/// Runs until three runs took within a tenth of the fastest, or patience ends. At least three runs
/// are made, after one that is ignored because of page faults.
template <class Run>
Timing fastest_of(Clock clock, const Run& run, const Patience& patience = {}) {
  constexpr std::size_t min_runs = 3;
  constexpr double agreement = 1.1;
  run();
  std::vector<double> times;
  for (const double first = now(Clock::wall);;) {
    const double begin = now(clock);
    run();
    times.push_back(now(clock) - begin);
    if (times.size() < min_runs) continue;
    const double best = std::ranges::min(times);
    const auto agrees = [&](double time) { return time <= agreement * best; };
    const bool is_certain = std::ranges::count_if(times, agrees) >= static_cast<int>(min_runs);
    const double spent = now(Clock::wall) - first;
    if (is_certain || best < patience.enough || spent > patience.longest) break;
  }
  std::ranges::sort(times);
  return {times.front(), times[times.size() / 2] / times.front()};
}

/// Returns whether other programs use the cores: threads that only count get less than nine tenths
/// of their time. Takes less than a tenth of a second.
bool is_busy(Index threads);

}  // namespace kzero::plan
