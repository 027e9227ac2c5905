// src/runtime/stream_timer_cuda.cpp against a runtime that is strict, on a clock of the test's own.
#include <gtest/gtest.h>

#include "doubles/cuda_runtime.hpp"
#include "runtime/cuda_stream.hpp"
#include "runtime/event.hpp"
#include "runtime/stream_timer.hpp"

namespace kzero::runtime {
namespace {

class CudaStreamTimer : public testing::Test {
 protected:
  CudaStreamTimer() { doubles::set_calls(doubles::Calls::queued); }
  ~CudaStreamTimer() override { doubles::set_calls(doubles::Calls::at_once); }

  /// Enqueues work that takes so long.
  void work(const Execution& on, double milliseconds) {
    doubles::enqueue(stream_of(on), [milliseconds] { doubles::pass_time(milliseconds); });
  }

  /// Makes the stream wait for the other one, and measures that.
  void wait() {
    Event& point = points_.emplace_back();
    point.record(other);
    timer.begin(stream);
    point.wait(stream);
    timer.end(stream);
  }

  const Execution stream, other = make_stream();
  StreamTimer timer;

 private:
  std::vector<Event> points_;
};

TEST_F(CudaStreamTimer, MeasuresHowLongAStreamWaits) {
  work(stream, 100);
  work(other, 7);
  wait();
  work(stream, 1000);
  EXPECT_EQ(timer.take_seconds(), 0) << "nothing has passed yet";
  stream.fence("");
  EXPECT_FLOAT_EQ(static_cast<float>(timer.take_seconds()), 0.007F);
  EXPECT_EQ(timer.take_seconds(), 0) << "it was taken";
}

TEST_F(CudaStreamTimer, AddsUpWhatHasPassed) {
  for (int i = 0; i < 3; ++i) {
    work(other, 2);
    wait();
  }
  stream.fence("");
  work(other, 5);
  wait();
  EXPECT_FLOAT_EQ(static_cast<float>(timer.take_seconds()), 0.006F);
  stream.fence("");
  EXPECT_FLOAT_EQ(static_cast<float>(timer.take_seconds()), 0.005F);
}

TEST_F(CudaStreamTimer, WhatIsNeverTakenDoesNotPileUp) {
  for (int i = 0; i < 9000; ++i) wait();
  stream.fence("");
  work(other, 1);
  wait();  // beyond what is kept: not measured
  stream.fence("");
  EXPECT_EQ(timer.take_seconds(), 0);
  work(other, 1);
  wait();
  stream.fence("");
  EXPECT_FLOAT_EQ(static_cast<float>(timer.take_seconds()), 0.001F);
}

}  // namespace
}  // namespace kzero::runtime
