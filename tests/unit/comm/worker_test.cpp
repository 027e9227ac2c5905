#include "comm/worker.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace kzero::comm {
namespace {

TEST(Worker, RunsTasksInTheirOrderWhileTheCallerGoesOn) {
  std::vector<int> order;
  Worker worker;
  std::uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) last = worker.submit([&order, i] { order.push_back(i); });
  worker.wait(last);
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[i], i);
}

TEST(Worker, WaitsForNoMoreThanWasAskedFor) {
  std::atomic<bool> released = false;
  Worker worker;
  const auto first = worker.submit([] {});
  const auto second = worker.submit([&] {
    while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  worker.wait(0);
  worker.wait(first);
  released = true;
  worker.wait(second);
}

TEST(Worker, ThrowsWhatATaskThrewAndRunsNoneAfterIt) {
  std::atomic<bool> ran = false;
  Worker worker;
  const auto bad = worker.submit([] { throw std::runtime_error("no route"); });
  const auto next = worker.submit([&] { ran = true; });
  for (const auto number : {bad, next}) {
    try {
      worker.wait(number);
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "no route");
    }
  }
  EXPECT_FALSE(ran);
}

TEST(Worker, EndsWithTasksThatHaveNotBegun) {
  std::atomic<bool> began = false, released = false;
  std::atomic<int> ran = 0;
  std::thread releaser;
  {
    Worker worker;
    worker.submit([&] {
      began = true;
      while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
    for (int i = 0; i < 10; ++i) worker.submit([&] { ++ran; });
    while (!began) std::this_thread::yield();
    releaser = std::thread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      released = true;
    });
  }
  releaser.join();
  EXPECT_EQ(ran, 0);
}

}  // namespace
}  // namespace kzero::comm
