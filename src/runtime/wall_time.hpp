// How long this process has lived, and when its job has to be over: by run.wall_limit, or by the
// end that the batch system has put into the environment.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace kzero::runtime {

/// Seconds since the start of this process, launch and library start-up included. Where the kernel
/// does not tell its start, seconds since the program was loaded.
double process_seconds();

/// Whether the kernel told when this process began.
bool knows_process_start();

/// Age of a process from its line in /proc/PID/stat, whose start counts ticks since boot, by the
/// clock that counts so as well. /proc/uptime is no such clock: containers replace it by their own.
/// Nothing where that cannot be an age: an unreadable line, no start, a start in the future.
std::optional<double> age_by_kernel(const std::string& stat, double seconds_since_boot,
                                    double ticks_per_second);

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Names the end of a Slurm job in seconds since 1970. Newer Slurms set it; for others such
/// as 22.05 the job scripts do.
inline constexpr const char* job_end_variable = "SLURM_JOB_END_TIME";

struct Deadline {
  double seconds = 0;       // since the start of this process
  std::string_view source;  // job_end_variable or "run.wall_limit"
};

/// The earlier of wall_limit (seconds as in the deck; 0: none) and the job's end in the
/// environment. An end that has passed or is no number is an error of ExitCode::usage: the variable
/// is left over from another job.
std::optional<Deadline> find_deadline(double wall_limit);

}  // namespace kzero::runtime
