#include "train/alarm.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <thread>

#include "base/error.hpp"
#include "grid/process_grid.hpp"
#include "runtime/host_name.hpp"

namespace kzero::train {

namespace {

// Ranks that wait for the same one began within a step of one another.
constexpr std::chrono::seconds time_for_others{3};

std::string describe(const Wait& wait, std::chrono::duration<double> waited) {
  const std::string partner =
      wait.rank >= 0 ? fmt::format("rank {}", wait.rank) : std::string("the ranks");
  const std::string when =
      step_now() >= 0 ? fmt::format("step {}", step_now()) : std::string("no step");
  if (!wait.problem.empty())
    return fmt::format("{} over group '{}' in {}: {}", wait.what, wait.group, when, wait.problem);
  return fmt::format(
      "{} over group '{}' in {}: has waited {:.0f} s for {} (run.watchdog). Ranks that do not "
      "report a "
      "wait are those that hang or are gone",
      wait.what, wait.group, when, waited.count(), partner);
}

}  // namespace

void give_up(const Wait& wait, std::chrono::duration<double> waited, int rank) {
  std::cerr << fmt::format("kzero: rank {} on {}: {}\n", rank, runtime::host_name(),
                           describe(wait, waited))
            << std::flush;
  std::this_thread::sleep_for(time_for_others);
  grid::abort_launch(static_cast<int>(ExitCode::other));
  std::_Exit(static_cast<int>(ExitCode::other));
}

}  // namespace kzero::train
