#include "runtime/wall_time.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "base/types.hpp"

namespace kzero::runtime {

namespace {

using Clock = std::chrono::steady_clock;

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

/// Seconds from now to the job's end; nothing outside jobs.
std::optional<double> job_seconds_left() {
  const char* value = std::getenv(job_end_variable);
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  Index end = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), end);
  KZERO_REQUIRE(problem == std::errc{} && rest == text.data() + text.size(), ExitCode::usage,
                "{} must be seconds since 1970, found '{}'; correct or unset it", job_end_variable,
                text);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const double left = static_cast<double>(end) - now.count();
  KZERO_REQUIRE(left > 0, ExitCode::usage,
                "{}={} passed {:.0f} s ago: it belongs to a job that is over; unset it",
                job_end_variable, text, -left);
  return left;
}

}  // namespace

double process_seconds() {
  // Asked of the kernel once; the steady clock then counts on and is unmoved by changes of the
  // date.
  static const double first_age = age_by_kernel();
  static const Clock::time_point first_asked = Clock::now();
  return first_age + std::chrono::duration<double>(Clock::now() - first_asked).count();
}

std::optional<Deadline> find_deadline(double wall_limit) {
  std::optional<Deadline> deadline;
  if (wall_limit > 0) deadline = {wall_limit, "run.wall_limit"};
  if (const auto left = job_seconds_left()) {
    const Deadline job_end{process_seconds() + *left, job_end_variable};
    if (!deadline || job_end.seconds < deadline->seconds) deadline = job_end;
  }
  return deadline;
}

}  // namespace kzero::runtime
