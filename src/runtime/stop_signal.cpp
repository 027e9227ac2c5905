#include "runtime/stop_signal.hpp"

#include <unistd.h>

#include <utility>

#include "base/error.hpp"
#include "runtime/wall_time.hpp"

namespace kzero::runtime {

namespace {

// A handler reaches nothing but globals.
volatile std::sig_atomic_t signal_came = 0;

extern "C" void note_signal(int) { signal_came = 1; }

}  // namespace

StopSignal::StopSignal(StopRules rules) : rules_(std::move(rules)) {
  signal_came = 0;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = note_signal;
    action.sa_flags = SA_RESTART | (signals[i] == SIGINT ? static_cast<int>(SA_RESETHAND) : 0);
    sigemptyset(&action.sa_mask);
    KZERO_REQUIRE(sigaction(signals[i], &action, &before_[i]) == 0, ExitCode::other,
                  "no handler can be set for signal {}", signals[i]);
  }
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
}

bool StopSignal::has_file() const {
  return !rules_.file.empty() && ::access(rules_.file.c_str(), F_OK) == 0;
}

std::optional<StopReason> StopSignal::wish() const {
  if (signal_came != 0) return StopReason::signal;
  if (has_file()) return StopReason::stop_file;
  if (process_seconds() >= rules_.after) return StopReason::wall_limit;
  return std::nullopt;
}

}  // namespace kzero::runtime
