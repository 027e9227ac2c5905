#include <gtest/gtest.h>

#include <thread>

#include "base/error.hpp"
#include "doubles/cuda_runtime.hpp"
#include "runtime/cuda_stream.hpp"
#include "runtime/event.hpp"

namespace kzero::runtime {
namespace {

using doubles::cuda_calls;
using Calls = std::vector<std::string>;

TEST(CudaEvent, WithoutAPointNothingIsAskedOfTheDevice) {
  cuda_calls().clear();
  const Event event;
  event.wait(Execution());
  event.synchronize();
  EXPECT_TRUE(event.reached());
  EXPECT_EQ(cuda_calls(), Calls{});
}

TEST(CudaEvent, OrdersLaterWorkBehindEarlier) {
  cuda_calls().clear();
  Event event;
  event.order(Execution(), Execution());
  EXPECT_EQ(cuda_calls(), (Calls{"record", "wait"}));
}

TEST(CudaEvent, IsReachedWhenTheDeviceSaysSo) {
  Event event;
  event.record(Execution());
  doubles::set_reached(false);
  EXPECT_FALSE(event.reached());
  doubles::set_reached(true);
  EXPECT_TRUE(event.reached());
}

TEST(CudaEvent, ReportsALaunchThatFailedBeforeIt) {
  Event event;
  doubles::fail_launches(true);
  try {
    event.record(Execution());
    ADD_FAILURE() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the launch of a kernel failed: invalid configuration argument");
  }
  doubles::fail_launches(false);
}

TEST(CudaDevice, IsTheProcessesInThreadsThatChooseIt) {
  int before = -1, after = -1;
  std::thread([&] {
    before = doubles::current_device();
    use_device();
    after = doubles::current_device();
  }).join();
  EXPECT_EQ(before, 0);
  EXPECT_EQ(after, 3);
  EXPECT_EQ(device_name(), "device 0000:38:00.0");
  EXPECT_EQ(device_kind(), "device of kind 3");
}

}  // namespace
}  // namespace kzero::runtime
