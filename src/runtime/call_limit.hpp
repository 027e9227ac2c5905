// Time limits on calls that may never return: MPI_Init, MPI_Finalize and MPI_Abort wait for other
// processes, which may no longer exist.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace kzero::runtime {

/// How long a launch of this many ranks may take from MPI_Init to the first heartbeat. During this
/// time nothing else detects that a node is lost. Launchers take minutes to start the ranks of
/// large jobs.
constexpr std::chrono::duration<double> start_limit(int ranks) {
  constexpr double base = 120, of_a_rank = 0.1;  // seconds
  return std::chrono::duration<double>(base + of_a_rank * ranks);
}

/// How long MPI_Finalize may take. With MPICH 4.0.2 and UCX over TCP it hangs in half of all
/// launches over several nodes: a rank flushes its connections to a rank that no longer answers
/// (openucx/ucx#8738 is similar).
inline constexpr std::chrono::seconds finalize_limit{30};

/// How long MPI_Abort may take. It waits for the launcher's answer, which never comes on a node
/// that is cut off.
inline constexpr std::chrono::seconds abort_limit{5};

/// While this object lives, a thread waits for `limit`, then calls `last_act` and ends the process
/// by _exit(exit_code). Flush output before construction. If the system refuses another thread,
/// there is no time limit.
class CallLimit {
 public:
  CallLimit(std::chrono::duration<double> limit, int exit_code,
            std::function<void()> last_act = {});
  ~CallLimit();
  CallLimit(const CallLimit&) = delete;
  CallLimit& operator=(const CallLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool left_ = false;
  std::thread thread_;
};

}  // namespace kzero::runtime
