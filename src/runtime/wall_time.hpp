// The age of this process, and the time by which its job must end: run.wall_limit, or the end that
// the batch system has put into the environment.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace kzero::runtime {

/// The seconds since the start of this process, including launch and library start-up. If the
/// kernel does not report the start: seconds since the program was loaded.
double process_seconds();

/// Returns whether the kernel reports when this process began.
bool knows_process_start();

/// Returns the age of a process from its line in /proc/PID/stat. The start time there is in ticks
/// since boot, so `seconds_since_boot` must come from the clock that also counts from boot.
/// /proc/uptime is not suitable: containers replace it by their own. Empty if the result cannot be
/// an age: an unreadable line, no start, a start in the future.
std::optional<double> age_by_kernel(const std::string& stat, double seconds_since_boot,
                                    double ticks_per_second);

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The variables with the end of a job in seconds since 1970. Newer versions of Slurm set the
/// first; for older ones such as 22.05 the job scripts set it. The second is for other batch
/// systems.
inline constexpr const char* slurm_job_end_variable = "SLURM_JOB_END_TIME";
inline constexpr const char* job_end_variable = "KZERO_JOB_END_TIME";

struct Deadline {
  double seconds = 0;       // since the start of this process
  std::string_view source;  // one of the variables or "run.wall_limit"
};

/// Returns the earliest of wall_limit (seconds as in the deck; 0: none) and the job's ends in the
/// environment. An end that has passed or is not a number is an error of ExitCode::usage: the
/// variable is left over from another job.
std::optional<Deadline> find_deadline(double wall_limit);

}  // namespace kzero::runtime
