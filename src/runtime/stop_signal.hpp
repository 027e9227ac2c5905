// Why a run should stop before its last step: a signal from the batch system or from the keyboard,
// a file that someone made, or the nearing end of the job. Knows this process only: ranks agree
// through their group, on the encoded wish.
#pragma once

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

struct StopWish {
  StopReason reason{};
  int signal = 0;  // the signal's number; 0 for other reasons

  bool operator==(const StopWish&) const = default;
};

/// A wish as a number to take the maximum of over ranks; 0: go on.
constexpr Index encode(std::optional<StopWish> wish) {
  return wish ? static_cast<Index>(wish->reason) * 256 + wish->signal : 0;
}
constexpr std::optional<StopWish> decode_stop(Index code) {
  if (code == 0) return std::nullopt;
  return StopWish{static_cast<StopReason>(code / 256), static_cast<int>(code % 256)};
}

/// What this rank heeds beside signals.
struct StopRules {
  double after = std::numeric_limits<double>::infinity();  // seconds since the process's start
  std::string file{};                                      // looked for at every wish; empty: none
};

/// Notes stop signals while it lives; at most one at a time. The first one counts, and further ones
/// change nothing.
class StopSignal {
 public:
  explicit StopSignal(StopRules rules = {});
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// This rank's wish alone.
  std::optional<StopWish> wish() const;
  bool has_file() const;

 private:
  StopRules rules_;
};

}  // namespace kzero::runtime
