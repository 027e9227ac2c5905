#include "runtime/wall_time.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/error.hpp"
#include "base/types.hpp"

namespace kzero::runtime {

namespace {

using Clock = std::chrono::steady_clock;

// Initialized with the static objects, before main.
const Clock::time_point program_began = Clock::now();

std::optional<double> ask_kernel() {
  std::ifstream file("/proc/self/stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  timespec boot{};
  if (::clock_gettime(CLOCK_BOOTTIME, &boot) != 0) return std::nullopt;
  const double now = static_cast<double>(boot.tv_sec) + 1e-9 * static_cast<double>(boot.tv_nsec);
  return age_by_kernel(stat, now, static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

/// The age of this process at the first call. The steady clock continues from there, unaffected by
/// changes of the date.
struct FirstAge {
  std::optional<double> by_kernel = ask_kernel();
  Clock::time_point asked = Clock::now();
  double seconds = by_kernel.value_or(std::chrono::duration<double>(asked - program_began).count());
};

const FirstAge& first_age() {
  static const FirstAge age;
  return age;
}

/// The seconds from now to the job's end, from the variable of this name; empty if it is not set.
std::optional<double> job_seconds_left(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  const std::string_view text = value;
  Index end = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), end);
  KZERO_REQUIRE(problem == std::errc{} && rest == text.data() + text.size(), ExitCode::usage,
                "{} must be seconds since 1970, found '{}'; correct or unset it", name, text);
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const double left = static_cast<double>(end) - now.count();
  KZERO_REQUIRE(left > 0, ExitCode::usage,
                "{}={} passed {:.0f} s ago: it belongs to a job that is over; unset it", name, text,
                -left);
  return left;
}

}  // namespace

std::optional<double> age_by_kernel(const std::string& stat, double seconds_since_boot,
                                    double ticks_per_second) {
  // The program's name, in parentheses, may contain blanks. The start time is the 20th field after
  // it.
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string skipped;
  for (int field = 0; field < 19; ++field) fields >> skipped;
  double start_ticks = 0;
  fields >> start_ticks;
  if (!fields || start_ticks <= 0 || ticks_per_second <= 0) return std::nullopt;
  const double age = seconds_since_boot - start_ticks / ticks_per_second;
  const double rounding = 1 / ticks_per_second;
  if (age < -rounding) return std::nullopt;
  return std::max(0.0, age);
}

double process_seconds() {
  const FirstAge& first = first_age();
  return first.seconds + seconds_since(first.asked);
}

bool knows_process_start() { return first_age().by_kernel.has_value(); }

std::optional<Deadline> find_deadline(double wall_limit) {
  std::optional<Deadline> deadline;
  if (wall_limit > 0) deadline = {wall_limit, "run.wall_limit"};
  for (const char* name : {slurm_job_end_variable, job_end_variable}) {
    const auto left = job_seconds_left(name);
    if (!left) continue;
    const Deadline job_end{process_seconds() + *left, name};
    if (!deadline || job_end.seconds < deadline->seconds) deadline = job_end;
  }
  return deadline;
}

}  // namespace kzero::runtime
