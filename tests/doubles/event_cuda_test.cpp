// src/runtime/event_cuda.cpp, device_cuda.cpp and execution.cpp against a runtime that is strict.
#include <gtest/gtest.h>

#include <thread>

#include "base/error.hpp"
#include "comm/worker.hpp"
#include "doubles/cuda_runtime.hpp"
#include "runtime/cuda_stream.hpp"
#include "runtime/event.hpp"

namespace kzero::runtime {
namespace {

using doubles::Calls;
using doubles::take_violations;

class CudaEvent : public testing::Test {
 protected:
  CudaEvent() { doubles::set_calls(Calls::queued); }
  ~CudaEvent() override { doubles::set_calls(Calls::at_once); }

  void append(const Execution& on, int number) {
    doubles::enqueue(stream_of(on), [this, number] { done.push_back(number); });
  }

  const Execution first = make_stream(), second = make_stream();
  std::vector<int> done;
};

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(CudaEvent, WithoutAPointNothingIsWaitedFor) {
  append(first, 1);
  const Event event;
  event.wait(first);
  event.synchronize();
  EXPECT_TRUE(event.reached());
  EXPECT_EQ(done, std::vector<int>{});
  first.fence("");
}

TEST_F(CudaEvent, OrdersLaterWorkAfterEarlier) {
  append(first, 1);
  Event event;
  event.order(first, second);
  append(second, 2);
  append(first, 3);
  second.fence("");
  EXPECT_EQ(done, (std::vector{1, 2}));
  first.fence("");
}

TEST_F(CudaEvent, IsReachedOnceWhatIsBeforeItHasRun) {
  Event event;
  append(first, 1);
  event.record(first);
  append(first, 2);
  EXPECT_FALSE(event.reached());
  event.synchronize();
  EXPECT_EQ(done, std::vector{1});
  EXPECT_TRUE(event.reached());
  event.record(first);
  EXPECT_FALSE(event.reached()) << "the later point replaces the earlier one";
  first.fence("");
}

TEST_F(CudaEvent, StaysUsableAfterAnAnswerThatItIsNotReached) {
  Event event, other;
  append(first, 1);
  event.record(first);
  EXPECT_FALSE(event.reached());
  EXPECT_EQ(error_of([&] { other.record(second); }), "no error");
  first.fence("");
}

TEST_F(CudaEvent, ReportsALaunchThatFailedBeforeIt) {
  const std::string expected = "the launch of a kernel failed: invalid configuration argument";
  Event event;
  event.record(first);
  append(first, 1);
  Event late;
  late.record(first);
  doubles::fail_launch();
  EXPECT_EQ(error_of([&] { event.record(first); }), expected);
  EXPECT_EQ(error_of([&] { EXPECT_FALSE(late.reached()); }), expected)
      << "the question would hide the error";
  EXPECT_EQ(error_of([&] { event.record(first); }), expected) << "the error stays";
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  first.fence("");
}

TEST_F(CudaEvent, OfAThreadThatHasNotChosenTheDeviceIsRefused) {
  std::string found;
  std::thread([&] {
    Event event;
    found = error_of([&] { event.record(first); });
  }).join();
  EXPECT_EQ(found, name_here("cudaEventRecord") + " failed: invalid resource handle");
  EXPECT_FALSE(take_violations().empty());
}

TEST_F(CudaEvent, OnAStreamThatIsGoneIsRefused) {
  const cudaStream_t gone = stream_of(make_stream());
  EXPECT_FALSE(doubles::is_stream(gone));
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, gone), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(take_violations().size(), 1U);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(take_violations().size(), 1U);
  static_cast<void>(cudaGetLastError());
}

TEST_F(CudaEvent, StreamsAreTheirOwnAndLiveAsLongAsCopies) {
  EXPECT_NE(stream_of(first), stream_of(second));
  EXPECT_NE(stream_of(first), stream_of(Execution()));
  EXPECT_EQ(stream_of(Execution()), stream_of(Execution()));
  auto copy = std::make_unique<Execution>(make_stream());
  const Execution kept = *copy;
  copy.reset();
  EXPECT_TRUE(doubles::is_stream(stream_of(kept)));
}

TEST(CudaDevice, IsTheProcessesInThreadsThatChooseIt) {
  int before = -1, after = -1;
  std::thread([&] {
    before = doubles::current_device();
    use_device();
    after = doubles::current_device();
    Event event;
    EXPECT_EQ(error_of([&] { event.record(Execution()); }), "no error");
  }).join();
  EXPECT_EQ(before, 0);
  EXPECT_EQ(after, 3);
  EXPECT_EQ(device_number(), 3);
  EXPECT_EQ(device_count(), 4);
  EXPECT_EQ(device_name(), "device 0000:00:03.0");
  EXPECT_EQ(device_kind(), "device of kind 3");
}

TEST(CudaDevice, ThatAWorkerCannotUseFailsItsFirstWait) {
  doubles::refuse_device(true);
  bool ran = false;
  comm::Worker worker;
  const auto task = worker.submit([&] { ran = true; });
  EXPECT_NE(error_of([&] { worker.wait(task); }).find(name_here("cudaSetDevice")),
            std::string::npos);
  EXPECT_FALSE(ran);
  doubles::refuse_device(false);
}

}  // namespace
}  // namespace kzero::runtime
