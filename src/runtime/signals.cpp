#include "runtime/signals.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <memory>
#include <thread>

#include "base/error.hpp"
#include "runtime/launch.hpp"

namespace kzero::runtime {

namespace {

enum class OnStop { end, note, leave };

std::atomic<OnStop> on_stop = OnStop::end;
std::atomic<bool> ends_on_hangup = false;
std::atomic<int> noted = 0;
std::atomic<int> leave_code = 0;
std::atomic<const char*> answer_to_keyboard = "";

/// Time for MPI to finalize: a rank that does not finalize changes the exit code of the launch.
constexpr std::chrono::seconds time_to_leave{2};

/// Signals that are left alone. Blocking the first ones would have no effect or hide a fault; job
/// control works without a handler.
constexpr int left_alone[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGABRT,
                              SIGSYS,  SIGPIPE, SIGXFSZ, SIGTSTP, SIGTTIN, SIGTTOU};

bool has_handler(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 ||
         (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

struct sigaction action_of(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action;
}

/// Ends the process by the signal's default action, so that its parent sees the cause.
void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  ::kill(::getpid(), signal);
}

void note(int signal) {
  int none = 0;
  if (!noted.compare_exchange_strong(none, signal) || signal != SIGINT) return;
  const std::string_view answer = answer_to_keyboard.load();
  if (::isatty(STDERR_FILENO) == 1) (void)!::write(STDERR_FILENO, answer.data(), answer.size());
}

void take(int signal) {
  if (action_of(signal).sa_handler == SIG_IGN) return;  // for example in a shell's background job
  if (signal == SIGQUIT || (signal == SIGHUP && ends_on_hangup)) return end_by(signal);
  if (signal_name(signal).empty()) return;
  switch (on_stop) {
    case OnStop::end:
      return end_by(signal);
    case OnStop::note:
      return note(signal);
    case OnStop::leave:
      std::this_thread::sleep_for(time_to_leave);
      ::_exit(leave_code);
  }
}

[[noreturn]] void take_all(sigset_t taken) {
  constexpr timespec pause{.tv_sec = 1, .tv_nsec = 0};
  while (true) {
    const int signal = ::sigtimedwait(&taken, nullptr, &pause);
    if (signal > 0) take(signal);
    if (signal < 0 && errno == EAGAIN && on_stop != OnStop::leave) end_without_launcher();
  }
}

/// Skips threads that already have an alternate stack: sanitizers set up and free their own.
void use_alternate_stack() {
  stack_t found{};
  if (::sigaltstack(nullptr, &found) != 0 || (found.ss_flags & SS_DISABLE) == 0) return;
  const std::size_t bytes = ::getauxval(AT_MINSIGSTKSZ) + (std::size_t{64} << 10);
  thread_local const std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);
  const stack_t own{.ss_sp = memory.get(), .ss_flags = 0, .ss_size = bytes};
  ::sigaltstack(&own, nullptr);
}

void move_handlers() {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = action_of(signal);
    if (!has_handler(action)) continue;
    action.sa_flags |= SA_ONSTACK;
    sigaction(signal, &action, nullptr);
  }
}

}  // namespace

std::string_view signal_name(int signal) {
  const auto found =
      std::ranges::find(stop_signals, signal, &std::pair<int, std::string_view>::first);
  return found == stop_signals.end() ? std::string_view() : found->second;
}

void take_signals() {
  remember_launcher();
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t taken;
  sigfillset(&taken);
  for (const int signal : left_alone) sigdelset(&taken, signal);
  for (const int signal : {SIGPROF, SIGVTALRM, SIGALRM}) {
    if (has_handler(action_of(signal))) sigdelset(&taken, signal);
  }
  KZERO_REQUIRE(pthread_sigmask(SIG_BLOCK, &taken, nullptr) == 0, ExitCode::other,
                "signals cannot be blocked");
  use_alternate_stack();
  move_handlers();
  std::thread(take_all, taken).detach();
}

void end_on_hangup() { ends_on_hangup = !started_without_hangup(); }

void note_stop_signals(const char* answer) {
  noted = 0;
  answer_to_keyboard = answer;
  on_stop = OnStop::note;
  std::signal(SIGPIPE, SIG_IGN);
}

int noted_stop_signal() { return noted; }

void leave_on_signals(int exit_code) {
  leave_code = exit_code;
  on_stop = OnStop::leave;
}

int code_on_leaving() { return leave_code; }

void forget_stop_signals() {
  OnStop note = OnStop::note;
  on_stop.compare_exchange_strong(note, OnStop::end);
  noted = 0;
}

void move_handlers_to_alternate_stacks() {
  use_alternate_stack();
  using Host = Kokkos::DefaultHostExecutionSpace;
  const int threads = Host().concurrency();
  Kokkos::parallel_for(
      "kzero::runtime::use_alternate_stack",
      Kokkos::RangePolicy<Host, Kokkos::Schedule<Kokkos::Static>, Kokkos::IndexType<int>>(0,
                                                                                          threads),
      [](int) { use_alternate_stack(); });
  Kokkos::fence("kzero::runtime::alternate_stacks_in_use");
  std::signal(SIGXFSZ, SIG_IGN);  // again: CUDA's driver has installed a handler
  move_handlers();
}

namespace {

bool was_ignored = false;

/// Not instrumented, because sanitizers may not have started yet.
__attribute__((no_sanitize("address", "thread", "undefined"))) void look_at_hangup() {
  struct sigaction action {};
  sigaction(SIGHUP, nullptr, &action);
  was_ignored = action.sa_handler == SIG_IGN;
}

/// The dynamic loader calls the functions in this section of a program before the constructors of
/// its shared libraries.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)() = look_at_hangup;

}  // namespace

bool started_without_hangup() { return was_ignored; }

}  // namespace kzero::runtime
