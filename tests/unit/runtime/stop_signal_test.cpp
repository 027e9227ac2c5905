#include "runtime/stop_signal.hpp"

#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "grid/group.hpp"
#include "runtime/signals.hpp"
#include "runtime/wall_time.hpp"
#include "support/default_actions.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::runtime {
namespace {

/// Returns the stop request after the signal thread has handled all sent signals.
std::optional<StopWish> wish_after_signal(const StopSignal& stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!stop.wish() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return stop.wish();
}

StopWish by(int signal) { return {StopReason::signal, signal}; }

class StopSignals : public testing::Test {
 private:
  tests::DefaultActions actions_;
};

TEST(StopSignal, WishesNothingByItself) {
  const StopSignal stop;
  EXPECT_EQ(stop.wish(), std::nullopt);
}

TEST_F(StopSignals, EachSignalIsNotedByName) {
  for (const auto& [signal, name] : stop_signals) {
    const StopSignal stop;
    kill(getpid(), signal);
    ASSERT_EQ(wish_after_signal(stop), by(signal)) << name;
    EXPECT_EQ(signal_name(signal), name);
  }
}

TEST_F(StopSignals, TheFirstOfManyCounts) {
  const StopSignal stop;
  kill(getpid(), SIGTERM);
  EXPECT_EQ(wish_after_signal(stop), by(SIGTERM));
  for (int i = 0; i < 100; ++i) kill(getpid(), i % 2 == 0 ? SIGINT : SIGUSR1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(stop.wish(), by(SIGTERM));
}

TEST(StopSignal, SignalsThatAskForNothingAreDropped) {
  const StopSignal stop;
  for (const int signal : {SIGALRM, SIGPROF, SIGVTALRM, SIGWINCH, SIGCHLD, SIGURG, SIGIO, SIGHUP})
    kill(getpid(), signal);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(stop.wish(), std::nullopt);
}

TEST(StopSignal, WhatIsIgnoredFromOutsideStaysIgnored) {
  const auto before = std::signal(SIGUSR2, SIG_IGN);
  const StopSignal stop;
  kill(getpid(), SIGUSR2);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(stop.wish(), std::nullopt);
  std::signal(SIGUSR2, before);
}

TEST(StopSignal, WishesTheWallLimitAfterItsTimeOfTheProcess) {
  const double now = process_seconds();
  EXPECT_EQ(StopSignal({.after = now - 1}).wish(), StopWish{StopReason::wall_limit});
  const StopSignal soon({.after = now + 0.2});
  EXPECT_EQ(soon.wish(), std::nullopt);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_EQ(soon.wish(), StopWish{StopReason::wall_limit});
}

TEST(StopSignal, WishesToStopOnceTheFileExistsAndNoLongerThanThat) {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "stop";
  const StopSignal stop({.file = path.string()});
  EXPECT_EQ(stop.wish(), std::nullopt);
  std::ofstream(path).flush();
  EXPECT_TRUE(stop.has_file());
  EXPECT_EQ(stop.wish(), StopWish{StopReason::stop_file});
  std::filesystem::remove(path);
  EXPECT_EQ(stop.wish(), std::nullopt);
}

TEST_F(StopSignals, OneRanksSignalStopsAllRanks) {
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  const grid::Group group(world, "world");
  const StopSignal stop;
  EXPECT_EQ(decode_stop(group.max(encode(stop.wish()))), std::nullopt);
  if (group.rank() == group.size() - 1) {
    kill(getpid(), SIGUSR1);
    wish_after_signal(stop);
  }
  EXPECT_EQ(decode_stop(group.max(encode(stop.wish()))), by(SIGUSR1));
}

TEST(StopSignal, CodesSurviveTheTripAndASignalOutranksTheRest) {
  const StopWish file{StopReason::stop_file}, limit{StopReason::wall_limit};
  for (const auto wish : {std::optional<StopWish>(), std::optional(by(SIGTERM)),
                          std::optional(by(SIGXCPU)), std::optional(file), std::optional(limit)}) {
    EXPECT_EQ(decode_stop(encode(wish)), wish);
  }
  EXPECT_GT(encode(by(SIGTERM)), encode(file));
  EXPECT_GT(encode(file), encode(limit));
  EXPECT_EQ(name_of(StopReason::signal), "signal");
  EXPECT_EQ(name_of(StopReason::stop_file), "stop_file");
  EXPECT_EQ(name_of(StopReason::wall_limit), "wall_limit");
}

}  // namespace
}  // namespace kzero::runtime
