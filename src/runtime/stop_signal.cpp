#include "runtime/stop_signal.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <string>

#include "base/error.hpp"

namespace kzero::runtime {

namespace {

using Clock = std::chrono::steady_clock;

// A handler reaches nothing but globals.
volatile std::sig_atomic_t signal_came = 0;

extern "C" void note_signal(int) { signal_came = 1; }

/// Age of this process from the kernel's record of its start, which counts ticks since boot.
double age_by_kernel() {
  std::ifstream stat_file("/proc/self/stat");
  const std::string stat((std::istreambuf_iterator<char>(stat_file)), {});
  double up = 0;
  std::ifstream("/proc/uptime") >> up;
  // The program's name, in parentheses, may hold blanks; the start is the 20th field after it.
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string skipped;
  for (int field = 0; field < 19; ++field) fields >> skipped;
  double start_ticks = 0;
  fields >> start_ticks;
  KZERO_REQUIRE(fields && up > 0, ExitCode::other,
                "/proc/self/stat and /proc/uptime do not tell when this process began");
  return up - start_ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

double process_seconds() {
  // Asked of the kernel once; the steady clock then counts on and is unmoved by changes of the
  // date.
  static const double first_age = age_by_kernel();
  static const Clock::time_point first_asked = Clock::now();
  return first_age + std::chrono::duration<double>(Clock::now() - first_asked).count();
}

StopSignal::StopSignal(double wall_limit, double stop_margin)
    : stop_at_(wall_limit > 0 ? wall_limit - stop_margin
                              : std::numeric_limits<double>::infinity()) {
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

std::optional<StopReason> StopSignal::wish() const {
  if (signal_came != 0) return StopReason::signal;
  if (process_seconds() >= stop_at_) return StopReason::wall_limit;
  return std::nullopt;
}

}  // namespace kzero::runtime
