#include "train/failure.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <iostream>
#include <new>
#include <thread>

#include "base/printable.hpp"
#include "grid/process_grid.hpp"
#include "runtime/host_name.hpp"
#include "runtime/launch.hpp"
#include "runtime/signals.hpp"

namespace kzero::train {

namespace {

/// Waits until the launcher has read all output, at most two seconds: a launcher that learns of an
/// abort drops what it has not read from the ranks' pipes, and half of the messages were lost.
void wait_until_read(int descriptor) {
  using std::chrono::milliseconds;
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISFIFO(status.st_mode)) return;
  for (int i = 0, unread = 1; i < 200 && unread > 0; ++i) {
    if (::ioctl(descriptor, FIONREAD, &unread) != 0) return;
    if (unread > 0) std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.what(), error.code()};
  } catch (const std::bad_alloc&) {
    return {"no more memory", ExitCode::memory};
  } catch (const std::exception& error) {
    return {error.what(), ExitCode::other};
  } catch (...) {
    return {"an unknown kind of failure", ExitCode::other};
  }
}

void end_launch(const Failure& failure) {
  const auto rank = runtime::launch_rank();
  const std::string place =
      rank ? fmt::format("rank {} on {}: ", *rank, runtime::host_name()) : std::string();
  std::cerr << fmt::format("kzero: {}{}\n", place, printable_lines(failure.text)) << std::flush;
  wait_until_read(STDERR_FILENO);
  // A launcher that ends its ranks by signals, or that is gone first, must not change the exit
  // code.
  runtime::leave_on_signals(static_cast<int>(failure.code));
  grid::abort_launch(static_cast<int>(failure.code));
}

}  // namespace kzero::train
