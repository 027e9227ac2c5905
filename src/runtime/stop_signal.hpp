// Why a run should stop before its last step: a signal from the batch system or from the keyboard,
// a file that someone made, or the nearing end of the job. Knows this process only: ranks agree
// through their group, on the encoded wish.
#pragma once

#include <array>
#include <csignal>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace kzero::runtime {

/// In order of precedence where ranks wish differently: the largest code wins.
enum class StopReason { wall_limit = 1, stop_file = 2, signal = 3 };

/// As the end record names it.
constexpr std::string_view name_of(StopReason reason) {
  constexpr std::string_view names[] = {"", "wall_limit", "stop_file", "signal"};
  return names[static_cast<int>(reason)];
}

/// A wish as a number to take the maximum of over ranks; 0: go on.
constexpr Index encode(std::optional<StopReason> wish) {
  return wish ? static_cast<Index>(*wish) : 0;
}
constexpr std::optional<StopReason> decode_stop(Index code) {
  return code == 0 ? std::nullopt : std::optional(static_cast<StopReason>(code));
}

/// What this rank heeds beside signals.
struct StopRules {
  double after = std::numeric_limits<double>::infinity();  // seconds since the process's start
  std::string file{};                                      // looked for at every wish; empty: none
};

/// Catches SIGTERM, SIGUSR1 and SIGINT while it lives; at most one at a time. A second SIGINT ends
/// the process at once, as people expect of the keyboard.
class StopSignal {
 public:
  explicit StopSignal(StopRules rules = {});
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// This rank's wish alone.
  std::optional<StopReason> wish() const;
  bool has_file() const;

 private:
  static constexpr std::array signals{SIGTERM, SIGUSR1, SIGINT};

  StopRules rules_;
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace kzero::runtime
