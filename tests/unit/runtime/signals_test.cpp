#include "runtime/signals.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "support/default_actions.hpp"

namespace kzero::runtime {
namespace {

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

bool is_pending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

TEST(Signals, StayOutOfEveryThreadThatComputes) {
  std::atomic<int> open = 0;
  const auto look = [&open] {
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, SIGALRM, SIGPROF, SIGCHLD,
                             SIGWINCH, SIGIO, SIGVTALRM, SIGXCPU})
      open += is_blocked(signal) ? 0 : 1;
  };
  look();
  std::thread(look).join();
  using Host = Kokkos::DefaultHostExecutionSpace;
  Kokkos::parallel_for(
      "kzero::tests::look_at_masks",
      Kokkos::RangePolicy<Host, Kokkos::Schedule<Kokkos::Static>>(0, Host().concurrency()),
      [&look](int) { look(); });
  EXPECT_EQ(open, 0);
}

TEST(Signals, FaultsAndJobControlKeepTheirActions) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTSTP, SIGPIPE})
    EXPECT_FALSE(is_blocked(signal)) << signal;
}

std::atomic<const char*> handler_frame = nullptr;

void note_frame(int) {
  const char here = 0;
  handler_frame = &here;
}

TEST(Signals, HandlersOfLibrariesRunOnAlternateStacks) {
  struct sigaction action {
  }, before{};
  action.sa_handler = note_frame;  // like a profiler that does not request its own stack
  sigaction(SIGFPE, &action, &before);
  move_handlers_to_alternate_stacks();
  const auto on_alternate_stack = [] {
    stack_t stack{};
    sigaltstack(nullptr, &stack);
    std::raise(SIGFPE);
    const char* begin = static_cast<const char*>(stack.ss_sp);
    return begin != nullptr && handler_frame >= begin && handler_frame < begin + stack.ss_size;
  };
  EXPECT_TRUE(on_alternate_stack());
  sigaction(SIGFPE, &before, nullptr);
}

/// The exit status of a process that runs f and then waits for its end.
template <class F>
int status_of(F&& f) {
  const tests::DefaultActions actions;
  const pid_t child = fork();
  if (child == 0) {
    take_signals();
    f();
    std::this_thread::sleep_for(std::chrono::seconds(60));
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(Signals, EndAProgramThatHasNothingToSave) {
  for (const int signal : {SIGTERM, SIGINT, SIGQUIT}) {
    const int status = status_of([signal] { kill(getpid(), signal); });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << signal;
  }
}

TEST(Signals, ThatWereIgnoredFromOutsideStayIgnored) {
  const int status = status_of([] {
    for (const int signal : {SIGINT, SIGQUIT}) {
      std::signal(signal, SIG_IGN);
      kill(getpid(), signal);
    }
    while (is_pending(SIGINT) || is_pending(SIGQUIT))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(getpid(), SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(Signals, AHangupEndsOnlyAProgramThatAsksForThat) {
  if (started_without_hangup()) GTEST_SKIP() << "this test was started by nohup";
  const int ended = status_of([] {
    end_on_hangup();
    kill(getpid(), SIGHUP);
  });
  EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGHUP) << ended;
  const int dropped = status_of([] {
    kill(getpid(), SIGHUP);
    while (is_pending(SIGHUP)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(getpid(), SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(dropped) && WTERMSIG(dropped) == SIGTERM) << dropped;
}

TEST(Signals, FindTheCodeOfAProgramThatIsDone) {
  const int status = status_of([] {
    note_stop_signals("");
    leave_on_signals(75);
    kill(getpid(), SIGTERM);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 75) << status;
}

TEST(Signals, AWriteBeyondTheFileSizeLimitIsAnError) {
  struct sigaction action {};
  sigaction(SIGXFSZ, nullptr, &action);
  EXPECT_EQ(action.sa_handler, SIG_IGN);
}

}  // namespace
}  // namespace kzero::runtime
