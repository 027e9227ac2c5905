#include "runtime/stop_signal.hpp"

#include <unistd.h>

#include <utility>

#include "runtime/signals.hpp"
#include "runtime/wall_time.hpp"

namespace kzero::runtime {

StopSignal::StopSignal(StopRules rules) : rules_(std::move(rules)) {
  note_stop_signals(rules_.answer);
}

StopSignal::~StopSignal() { forget_stop_signals(); }

bool StopSignal::has_file() const {
  return !rules_.file.empty() && ::access(rules_.file.c_str(), F_OK) == 0;
}

std::optional<StopWish> StopSignal::wish() const {
  if (const int signal = noted_stop_signal(); signal != 0)
    return StopWish{StopReason::signal, signal};
  if (has_file()) return StopWish{StopReason::stop_file};
  if (process_seconds() >= rules_.after) return StopWish{StopReason::wall_limit};
  return std::nullopt;
}

}  // namespace kzero::runtime
