#include "base/waited.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

namespace kzero {
namespace {

void sleep_a_while() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

/// The seconds that f() adds to the account, and the seconds that pass meanwhile.
template <class F>
std::pair<double, double> added_and_passed(const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  const double before = seconds_waited().all;
  f();
  const double added = seconds_waited().all - before;
  return {added, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

TEST(CountedWait, CountsItsLifetime) {
  const auto [added, passed] = added_and_passed([] {
    const CountedWait wait;
    sleep_a_while();
  });
  EXPECT_GE(added, 0.02);
  EXPECT_LE(added, passed);
}

TEST(CountedWait, CountsNestedWaitsOnce) {
  const auto [added, passed] = added_and_passed([] {
    const CountedWait outer;
    for (int i = 0; i < 3; ++i) {
      const CountedWait inner;
      const CountedWait innermost;
      sleep_a_while();
    }
  });
  EXPECT_GE(added, 0.06);
  EXPECT_LE(added, passed);
}

TEST(CountedWait, IsNotInTheSumBeforeItEnds) {
  const double before = seconds_waited().all;
  std::optional<CountedWait> wait(std::in_place);
  sleep_a_while();
  EXPECT_EQ(seconds_waited().all, before);
  wait.reset();
  EXPECT_GE(seconds_waited().all - before, 0.02);
}

TEST(CountedWait, OfAnotherThreadIsThatThreadsOwn) {
  const double before = seconds_waited().all;
  double others = -1;
  std::thread([&] {
    others = seconds_waited().all;
    const CountedWait wait;
    sleep_a_while();
  }).join();
  EXPECT_EQ(others, 0);
  EXPECT_EQ(seconds_waited().all, before);
}

void spin(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

/// Calls f() while another thread competes for this thread's core.
template <class F>
void on_a_shared_core(const F& f) {
  cpu_set_t before{}, one{};
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> over = false;
  std::thread other([&] {  // inherits the affinity
    while (!over) {
    }
  });
  f();
  over = true;
  other.join();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(CoreDelay, IsTheTimeOfAThreadThatHasNoCore) {
  if (::access("/proc/thread-self/schedstat", R_OK) != 0) GTEST_SKIP() << "no account";
  const CoreDelay delay;
  on_a_shared_core([&] {
    const double before = delay.seconds();
    const auto begin = std::chrono::steady_clock::now();
    spin(0.3);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    EXPECT_GT(delay.seconds() - before, 0);
    EXPECT_LE(delay.seconds() - before, passed.count());
  });
}

TEST(CountedWait, TellsTheTimeWithoutACore) {
  if (::access("/proc/thread-self/schedstat", R_OK) != 0) GTEST_SKIP() << "no account";
  const CoreDelay delay;
  on_a_shared_core([&] {
    const WaitedSeconds before = seconds_waited();
    double without = 0;
    {
      const CountedWait wait;
      const double at_first = delay.seconds();
      spin(0.3);
      without = delay.seconds() - at_first;
    }
    const WaitedSeconds added = seconds_waited() - before;
    constexpr double rounding = 1e-9;  // of differences of seconds
    EXPECT_GT(without, 0);
    EXPECT_GE(added.without_core, without - rounding);
    EXPECT_LE(added.without_core, added.all);
    EXPECT_GE(added.all, 0.3);
  });
}

TEST(CountedWait, TellsTheTimeThatAHelperHasNoCore) {
  if (::access("/proc/thread-self/schedstat", R_OK) != 0) GTEST_SKIP() << "no account";
  double without = 0;
  WaitedSeconds added;
  on_a_shared_core([&] {
    std::atomic<const CoreDelay*> helper = nullptr;
    std::atomic<bool> over = false;
    std::thread thread([&] {  // on the same core as another thread
      const CoreDelay delay;
      helper = &delay;
      while (!over) {
      }
    });
    while (helper == nullptr) std::this_thread::yield();
    const WaitedSeconds before = seconds_waited();
    {
      const CountedWait wait(helper);
      const double at_first = helper.load()->seconds();
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      without = helper.load()->seconds() - at_first;
    }
    added = seconds_waited() - before;
    over = true;
    thread.join();
  });
  EXPECT_GT(without, 0);
  // A thread's time without a core is counted when the thread runs again, so some of it may be
  // older. The account counts nanoseconds, whose sums in seconds are rounded.
  EXPECT_GE(added.without_core + 1e-9, std::min(without, added.all));
  EXPECT_LE(added.without_core, added.all);
}

}  // namespace
}  // namespace kzero
