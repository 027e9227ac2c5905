#include "comm/failure.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>
#include <thread>

#include "base/abandoned_run.hpp"
#include "base/printable.hpp"
#include "grid/process_grid.hpp"
#include "runtime/call_limit.hpp"
#include "runtime/host_name.hpp"
#include "runtime/launch.hpp"
#include "runtime/signals.hpp"

namespace kzero::comm {

namespace {

// From this node's part of the launcher to the one that prints.
constexpr std::chrono::milliseconds time_of_relay{500};

/// Waits until the launcher has read all output, at most two seconds, and passed it on: a launcher
/// that learns of an abort drops what has not arrived, and half of the messages were lost.
void wait_until_read(int descriptor) {
  using std::chrono::milliseconds;
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  for (int i = 0, unread = 1; i < 200 && unread > 0; ++i) {
    if (::ioctl(descriptor, FIONREAD, &unread) != 0) return;
    if (unread > 0) std::this_thread::sleep_for(milliseconds(10));
  }
  std::this_thread::sleep_for(time_of_relay);
}

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.what(), error.code()};
  } catch (const std::bad_alloc&) {
    return {"no more memory", ExitCode::memory};
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return {
          "no more threads: a limit on processes and threads is reached (ulimit -u, or "
          "pids.max of the control group)",
          ExitCode::other};
    }
    return {error.what(), ExitCode::other};
  } catch (const std::exception& error) {
    return {error.what(), ExitCode::other};
  } catch (...) {
    return {"an unknown kind of failure", ExitCode::other};
  }
}

void print_failure(const std::string& text, int rank) {
  std::cerr << fmt::format("kzero: rank {} on {}: {}\n", rank, runtime::host_name(),
                           printable_lines(text))
            << std::flush;
  wait_until_read(STDERR_FILENO);
}

void leave_launch(ExitCode code) {
  abandon_run();
  // A launcher that ends its ranks by signals, or that is gone first, must not change the exit
  // code.
  runtime::leave_on_signals(static_cast<int>(code));
  const runtime::CallLimit limit(runtime::abort_limit, static_cast<int>(code));
  grid::abort_launch(static_cast<int>(code));
  std::_Exit(static_cast<int>(code));
}

void end_launch(const Failure& failure) {
  const auto rank = runtime::launch_rank();
  if (rank) {
    print_failure(failure.text, *rank);
  } else {
    std::cerr << fmt::format("kzero: {}\n", printable_lines(failure.text)) << std::flush;
    wait_until_read(STDERR_FILENO);
  }
  if (grid::is_launched()) leave_launch(failure.code);
}

}  // namespace kzero::comm
