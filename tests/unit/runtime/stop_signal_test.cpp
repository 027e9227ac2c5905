#include "runtime/stop_signal.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "grid/group.hpp"
#include "runtime/wall_time.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::runtime {
namespace {

void (*handler_of(int signal))(int) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

TEST(StopSignal, WishesNothingByItself) {
  const StopSignal stop;
  EXPECT_EQ(stop.wish(), std::nullopt);
}

TEST(StopSignal, EachSignalIsCaughtAndRemembered) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) {
    const StopSignal stop;
    std::raise(signal);
    EXPECT_EQ(stop.wish(), StopReason::signal) << signal;
    EXPECT_EQ(stop.wish(), StopReason::signal) << signal;
  }
}

TEST(StopSignal, RepeatedSignalsOfABatchSystemDoNoHarm) {
  const StopSignal stop;
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  std::raise(SIGUSR1);
  EXPECT_EQ(stop.wish(), StopReason::signal);
}

TEST(StopSignal, ASecondInterruptIsLeftToTheSystem) {
  const StopSignal stop;
  EXPECT_NE(handler_of(SIGINT), SIG_DFL);
  std::raise(SIGINT);
  EXPECT_EQ(handler_of(SIGINT), SIG_DFL);
}

TEST(StopSignal, PutsBackTheHandlersItFound) {
  const auto before = std::signal(SIGUSR1, SIG_IGN);
  { const StopSignal stop; }
  EXPECT_EQ(handler_of(SIGUSR1), SIG_IGN);
  std::signal(SIGUSR1, before);
}

TEST(StopSignal, WishesTheWallLimitAfterItsTimeOfTheProcess) {
  const double now = process_seconds();
  EXPECT_EQ(StopSignal({.after = now - 1}).wish(), StopReason::wall_limit);
  const StopSignal soon({.after = now + 0.2});
  EXPECT_EQ(soon.wish(), std::nullopt);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_EQ(soon.wish(), StopReason::wall_limit);
}

TEST(StopSignal, WishesToStopOnceTheFileExistsAndNoLongerThanThat) {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "stop";
  const StopSignal stop({.file = path.string()});
  EXPECT_EQ(stop.wish(), std::nullopt);
  std::ofstream(path).flush();
  EXPECT_TRUE(stop.has_file());
  EXPECT_EQ(stop.wish(), StopReason::stop_file);
  std::filesystem::remove(path);
  EXPECT_EQ(stop.wish(), std::nullopt);
}

TEST(StopSignal, OneRanksSignalStopsAllRanks) {
  MPI_Comm world = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &world);
  const grid::Group group(world, "world");
  const StopSignal stop;
  EXPECT_EQ(decode_stop(group.max(encode(stop.wish()))), std::nullopt);
  if (group.rank() == group.size() - 1) std::raise(SIGUSR1);
  EXPECT_EQ(decode_stop(group.max(encode(stop.wish()))), StopReason::signal);
}

TEST(StopSignal, CodesSurviveTheTripAndASignalOutranksTheRest) {
  for (const auto wish :
       {std::optional<StopReason>(), std::optional(StopReason::signal),
        std::optional(StopReason::stop_file), std::optional(StopReason::wall_limit)}) {
    EXPECT_EQ(decode_stop(encode(wish)), wish);
  }
  EXPECT_GT(encode(StopReason::signal), encode(StopReason::stop_file));
  EXPECT_GT(encode(StopReason::stop_file), encode(StopReason::wall_limit));
  EXPECT_EQ(name_of(StopReason::signal), "signal");
  EXPECT_EQ(name_of(StopReason::stop_file), "stop_file");
  EXPECT_EQ(name_of(StopReason::wall_limit), "wall_limit");
}

}  // namespace
}  // namespace kzero::runtime
