// Reasons why a run should stop before its last step: a signal from the batch system or the
// keyboard, a file that someone created, or the approaching end of the job. This concerns only this
// process: ranks agree through their group, on the encoded reason.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/types.hpp"

namespace kzero::runtime {

/// The reason, in ascending precedence: if ranks differ, the largest code wins.
enum class StopReason { wall_limit = 1, stop_file = 2, signal = 3 };

/// The name of the reason in the end record.
constexpr std::string_view name_of(StopReason reason) {
  constexpr std::string_view names[] = {"", "wall_limit", "stop_file", "signal"};
  return names[static_cast<int>(reason)];
}

struct StopWish {
  StopReason reason{};
  int signal = 0;  // the signal's number; 0 for other reasons

  bool operator==(const StopWish&) const = default;
};

/// Encodes a reason as a number, whose maximum over ranks is used. 0: continue.
constexpr Index encode(std::optional<StopWish> wish) {
  return wish ? static_cast<Index>(wish->reason) * 256 + wish->signal : 0;
}
constexpr std::optional<StopWish> decode_stop(Index code) {
  if (code == 0) return std::nullopt;
  return StopWish{static_cast<StopReason>(code / 256), static_cast<int>(code % 256)};
}

/// The conditions that this rank checks in addition to signals, and its answer to Ctrl-C.
struct StopRules {
  double after = std::numeric_limits<double>::infinity();  // seconds since the process's start
  std::string file{};                                      // checked at every poll; empty: none
  // The answer to Ctrl-C, a line that outlives the object.
  const char* answer =
      "kzero: stops after this step, or within an evaluation, with a checkpoint if it has a "
      "folder; "
      "Ctrl-\\ ends it now\n";
};

/// Records stop signals for as long as the object lives. At most one object may exist at a time.
/// Only the first signal counts.
class StopSignal {
 public:
  explicit StopSignal(StopRules rules = {});
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The reason on this rank only.
  std::optional<StopWish> wish() const;
  bool has_file() const;

 private:
  StopRules rules_;
};

}  // namespace kzero::runtime
