#include "runtime/call_limit.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <thread>

namespace kzero::runtime {
namespace {

using std::chrono::milliseconds;

TEST(CallLimit, EndsAProcessThatDoesNotLeave) {
  EXPECT_EXIT(
      {
        const CallLimit limit(milliseconds(50), 75);
        std::this_thread::sleep_for(std::chrono::seconds(100));
        std::_Exit(1);
      },
      testing::ExitedWithCode(75), "");
}

TEST(CallLimit, ActsBeforeItEndsAProcess) {
  EXPECT_EXIT(
      {
        const CallLimit limit(milliseconds(50), 1, [] { std::cerr << "waited in vain"; });
        std::this_thread::sleep_for(std::chrono::seconds(100));
        std::_Exit(2);
      },
      testing::ExitedWithCode(1), "^waited in vain$");
}

TEST(StartLimit, GrowsWithTheRanks) {
  EXPECT_GE(start_limit(1).count(), 120);
  EXPECT_GE(start_limit(10'000).count(), 1000);
}

TEST(CallLimit, LetsAProcessGoOnThatLeftInTime) {
  EXPECT_EXIT(
      {
        { const CallLimit limit(milliseconds(200), 75); }
        std::this_thread::sleep_for(milliseconds(400));
        std::_Exit(3);
      },
      testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace kzero::runtime
