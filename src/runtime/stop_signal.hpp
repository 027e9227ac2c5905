// Why a run should stop before its last step: a signal from the batch system or from the keyboard,
// or the nearing wall limit. Knows this process only: ranks agree through their group, on the
// encoded wish.
#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <string_view>

#include "base/types.hpp"

namespace kzero::runtime {

/// In order of precedence where ranks wish differently: the largest code wins.
enum class StopReason { wall_limit = 1, signal = 2 };

/// As the end record names it.
constexpr std::string_view name_of(StopReason reason) {
  return reason == StopReason::signal ? "signal" : "wall_limit";
}

/// A wish as a number to take the maximum of over ranks; 0: go on.
constexpr Index encode(std::optional<StopReason> wish) {
  return wish ? static_cast<Index>(*wish) : 0;
}
constexpr std::optional<StopReason> decode_stop(Index code) {
  return code == 0 ? std::nullopt : std::optional(static_cast<StopReason>(code));
}

/// Seconds since the start of this process, launch and library start-up included.
double process_seconds();

/// Catches SIGTERM, SIGUSR1 and SIGINT while it lives; at most one at a time. A second SIGINT ends
/// the process at once, as people expect of the keyboard.
class StopSignal {
 public:
  /// Seconds as in the deck: stop from wall_limit - stop_margin on, measured from the process's
  /// start; wall_limit 0: no limit.
  StopSignal(double wall_limit, double stop_margin);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// This rank's wish alone.
  std::optional<StopReason> wish() const;

 private:
  static constexpr std::array signals{SIGTERM, SIGUSR1, SIGINT};

  double stop_at_;  // seconds from the process's start; infinite without a limit
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace kzero::runtime
