// Bounds on calls that may never return: MPI_Init, MPI_Finalize and MPI_Abort wait for other
// processes, which may be gone.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace kzero::runtime {

/// How long a launch of so many ranks may take from MPI_Init to the first heartbeat. No rank
/// notices by other means that a node is lost meanwhile. Launchers start the ranks of large jobs
/// over minutes.
constexpr std::chrono::duration<double> start_limit(int ranks) {
  constexpr double least = 120, of_a_rank = 0.1;  // seconds
  return std::chrono::duration<double>(least + of_a_rank * ranks);
}

/// How long MPI_Finalize may take. With MPICH 4.0.2 and UCX over TCP it waits for ever in half of
/// all launches over several nodes: a rank flushes its connections to one that no longer answers
/// (openucx/ucx#8738 is similar).
inline constexpr std::chrono::seconds finalize_limit{30};

/// How long MPI_Abort may take. It waits for the launcher's answer, and never gets one on a node
/// that is cut off.
inline constexpr std::chrono::seconds abort_limit{5};

/// While it lives, a thread waits to end the process by _exit(exit_code) after `limit`, and calls
/// `last_act` before. Output has to be flushed before. If the system refuses another thread, there
/// is no bound.
class DepartureLimit {
 public:
  DepartureLimit(std::chrono::duration<double> limit, int exit_code,
                 std::function<void()> last_act = {});
  ~DepartureLimit();
  DepartureLimit(const DepartureLimit&) = delete;
  DepartureLimit& operator=(const DepartureLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool left_ = false;
  std::thread thread_;
};

}  // namespace kzero::runtime
