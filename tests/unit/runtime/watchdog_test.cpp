#include "runtime/watchdog.hpp"

#include <gtest/gtest.h>

#include <future>

namespace kzero::runtime {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

TEST(Watchdog, AlarmsOnceAWaitHasLastedTooLong) {
  std::promise<Wait> promise;
  auto alarm = promise.get_future();
  Watchdog watchdog(0.05, [&](const Wait& wait, Seconds) { promise.set_value(wait); });
  const Waiting later({"later", "others", 7});
  const Waiting waiting(
      {"all_gather of parameters", "data", 3, std::chrono::steady_clock::now() - 1h});
  ASSERT_EQ(alarm.wait_for(20s), std::future_status::ready);
  const Wait wait = alarm.get();
  EXPECT_EQ(wait.what, "all_gather of parameters");
  EXPECT_EQ(wait.group, "data");
  EXPECT_EQ(wait.rank, 3);
}

TEST(Watchdog, IsSilentWhileNothingLasts) {
  int alarms = 0;
  {
    Watchdog watchdog(0.2, [&](const Wait&, Seconds) { ++alarms; });
    const auto end = std::chrono::steady_clock::now() + 500ms;
    while (std::chrono::steady_clock::now() < end) {
      const Waiting waiting({"sum", "data"});
      std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(300ms);
  }
  EXPECT_EQ(alarms, 0);
}

TEST(Watchdog, CountsOnlyTheTimeInWhichItCouldLook) {
  const auto begin = std::chrono::steady_clock::now();
  std::promise<std::pair<Seconds, Seconds>> promise;
  auto alarm = promise.get_future();
  const Waiting waiting({"sum", "data", -1, begin - 1h});
  Watchdog watchdog(1, [&](const Wait&, Seconds waited) {
    promise.set_value({waited, std::chrono::steady_clock::now() - begin});
  });
  ASSERT_EQ(alarm.wait_for(60s), std::future_status::ready);
  const auto [waited, passed] = alarm.get();
  EXPECT_GE(waited, 1s);
  EXPECT_LE(waited, passed) << "the hour before its first look is not its own";
}

TEST(Watchdog, OfNoTimeNeverAlarms) {
  const Waiting waiting({"sum", "data", -1, std::chrono::steady_clock::now() - 1h});
  Watchdog watchdog(0, [](const Wait&, Seconds) { FAIL(); });
  std::this_thread::sleep_for(50ms);
}

// The last Watchdog test, because a failure remains recorded for the process's lifetime.
TEST(Watchdog, ReportsAFailureAtOnceAndBeforeAWait) {
  std::promise<Wait> promise;
  auto alarm = promise.get_future();
  const Waiting waiting({"sum", "data", -1, std::chrono::steady_clock::now() - 1h});
  note_failure({"all_gather of parameters", "data", -1, {}, "NCCL: unhandled system error"});
  note_failure({"a later one", "data"});
  Watchdog watchdog(1000, [&](const Wait& wait, Seconds) { promise.set_value(wait); });
  ASSERT_EQ(alarm.wait_for(20s), std::future_status::ready);
  const Wait wait = alarm.get();
  EXPECT_EQ(wait.what, "all_gather of parameters");
  EXPECT_EQ(wait.problem, "NCCL: unhandled system error");
}

TEST(Wait, TheLongestIsTheOldestOfThoseThatLast) {
  EXPECT_FALSE(longest_wait());
  const Waiting first({"first", "a"});
  {
    const Waiting second({"second", "b", 1, std::chrono::steady_clock::now() - 1h});
    EXPECT_EQ(longest_wait()->what, "second");
  }
  EXPECT_EQ(longest_wait()->what, "first");
}

}  // namespace
}  // namespace kzero::runtime
