#include "unit/kernels/tensor_cores/turns.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace kzero::kernels {
namespace {

TEST(Fibers, RunBetweenBarriersInTurns) {
  LaneMeeting meeting(3);
  std::vector<int> order;
  Fibers::run(3, [&](int number) {
    for (const int step : {0, 10}) {
      order.push_back(step + number);
      meeting.arrive_and_wait();
    }
  });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 12, 10, 11}));
}

// A kernel in which some threads skip a barrier must fail its test, and not hang the tests after
// it.
TEST(Fibers, ThatWaitForEverFail) {
  LaneMeeting meeting(3);
  const auto run = [&] {
    Fibers::run(3, [&](int number) {
      if (number != 1) meeting.arrive_and_wait();
    });
  };
  EXPECT_NONFATAL_FAILURE(run(), "2 of 3 threads wait at a barrier for ever");
}

}  // namespace
}  // namespace kzero::kernels
