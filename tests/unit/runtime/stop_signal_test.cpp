#include "runtime/stop_signal.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "grid/group.hpp"

namespace kzero::runtime {
namespace {

void (*handler_of(int signal))(int) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

TEST(StopSignal, WishesNothingByItself) {
  const StopSignal stop(0, 60);
  EXPECT_EQ(stop.wish(), std::nullopt);
}

TEST(StopSignal, EachSignalIsCaughtAndRemembered) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    const StopSignal stop(0, 60);
    std::raise(signal);
    EXPECT_EQ(stop.wish(), StopReason::signal) << signal;
    EXPECT_EQ(stop.wish(), StopReason::signal) << signal;
  }
}

TEST(StopSignal, RepeatedSignalsOfABatchSystemDoNoHarm) {
  const StopSignal stop(0, 60);
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  std::raise(SIGUSR1);
  EXPECT_EQ(stop.wish(), StopReason::signal);
}

TEST(StopSignal, ASecondInterruptIsLeftToTheSystem) {
  const StopSignal stop(0, 60);
  EXPECT_NE(handler_of(SIGINT), SIG_DFL);
  std::raise(SIGINT);
  EXPECT_EQ(handler_of(SIGINT), SIG_DFL);
}

TEST(StopSignal, PutsBackTheHandlersItFound) {
  const auto before = std::signal(SIGUSR1, SIG_IGN);
  { const StopSignal stop(0, 60); }
  EXPECT_EQ(handler_of(SIGUSR1), SIG_IGN);
  std::signal(SIGUSR1, before);
}

TEST(StopSignal, TheWallLimitCountsFromTheStartOfTheProcessLessTheMargin) {
  const double now = process_seconds();
  EXPECT_EQ(StopSignal(now + 50, 60).wish(), StopReason::wall_limit);
  EXPECT_EQ(StopSignal(now + 120, 60).wish(), std::nullopt);
  const StopSignal soon(now + 60.2, 60);
  EXPECT_EQ(soon.wish(), std::nullopt);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_EQ(soon.wish(), StopReason::wall_limit);
}

// The kernel's record counts 10 ms ticks; a test program is not older than ctest's limit for it.
TEST(StopSignal, TheProcessAgesWithTheClock) {
  const double first = process_seconds();
  EXPECT_GT(first, -0.02);
  EXPECT_LT(first, 300);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GE(process_seconds(), first + 0.05);
}

TEST(StopSignal, OneRanksSignalStopsAllRanks) {
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  const grid::Group group(world, "world");
  const StopSignal stop(0, 60);
  EXPECT_EQ(decode_stop(group.max(encode(stop.wish()))), std::nullopt);
  if (group.rank() == group.size() - 1) std::raise(SIGUSR1);
  EXPECT_EQ(decode_stop(group.max(encode(stop.wish()))), StopReason::signal);
}

TEST(StopSignal, CodesSurviveTheTripAndASignalOutranksTheWallLimit) {
  for (const auto wish : {std::optional<StopReason>(), std::optional(StopReason::signal),
                          std::optional(StopReason::wall_limit)}) {
    EXPECT_EQ(decode_stop(encode(wish)), wish);
  }
  EXPECT_GT(encode(StopReason::signal), encode(StopReason::wall_limit));
  EXPECT_EQ(name_of(StopReason::signal), "signal");
  EXPECT_EQ(name_of(StopReason::wall_limit), "wall_limit");
}

}  // namespace
}  // namespace kzero::runtime
