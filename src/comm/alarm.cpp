#include "comm/alarm.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <thread>

#include "base/abandoned_run.hpp"
#include "base/error.hpp"
#include "comm/failure.hpp"
#include "runtime/host_name.hpp"

namespace kzero::comm {

namespace {

// Ranks that wait for the same one began within a step of one another.
constexpr std::chrono::seconds time_for_others{3};

std::string describe(const Wait& wait, std::chrono::duration<double> waited,
                     const grid::Nodes& nodes) {
  const std::string partner = wait.rank >= 0
                                  ? fmt::format("rank {} on {}", wait.rank, nodes.host(wait.rank))
                                  : std::string("the ranks");
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

std::string describe(const runtime::Silence& silence) {
  using Kind = runtime::Silence::Kind;
  const std::string names = fmt::format("{}", fmt::join(silence.names, ", "));
  switch (silence.kind) {
    case Kind::peer:
      return fmt::format(
          "{} has not been heard for {:.0f} s (run.heartbeat). It is down, hangs or is cut off. "
          "The run ends; the same command resumes from the newest checkpoint",
          names, silence.seconds);
    case Kind::all:
      return fmt::format(
          "no other node has been heard for {:.0f} s: {} (run.heartbeat). This node is cut off, or "
          "they are down. The run ends; the same command resumes from the newest checkpoint",
          silence.seconds, names);
    case Kind::told:
      return "another rank has lost a node";
    case Kind::never_heard:
      return fmt::format(
          "warning: no sign of life has arrived from {} since the start, so its loss would not be "
          "noticed (run.heartbeat). The network may drop datagrams (UDP) between nodes",
          names);
  }
  return {};
}

}  // namespace

void give_up(const Wait& wait, std::chrono::duration<double> waited, int rank,
             const grid::Nodes& nodes) {
  abandon_run();
  print_failure(describe(wait, waited, nodes), rank);
  std::this_thread::sleep_for(time_for_others);
  leave_launch(ExitCode::other);
}

void heed(const runtime::Silence& silence, int rank) {
  using Kind = runtime::Silence::Kind;
  const bool is_alarm = silence.kind != Kind::never_heard;
  if (is_alarm) abandon_run();
  // Of all ranks only those that watch the silent node speak.
  if (silence.kind != Kind::told) print_failure(describe(silence), rank);
  // They need time to be heard: a launcher drops all output once one rank has ended the launch.
  if (silence.kind == Kind::told) std::this_thread::sleep_for(time_for_others);
  if (is_alarm) leave_launch(ExitCode::other);
}

}  // namespace kzero::comm
