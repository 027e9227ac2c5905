// A thread that runs tasks in the order in which they were submitted: the counterpart of a device
// stream for host messages.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/waited.hpp"

namespace kzero::comm {

class Worker {
 public:
  using Task = std::function<void()>;

  /// `name` is the thread's name in time lines.
  explicit Worker(const std::string& name = "worker");
  /// Drops the tasks that have not begun and waits for the running one.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Submits a task and returns its number, counted from 1.
  std::uint64_t submit(Task task);

  /// Returns when all tasks up to `number` have ended. Throws the exception of the first that
  /// failed.
  void wait(std::uint64_t number);

  /// The time for which the worker's thread had no core.
  const CoreDelay& core_delay() const { return *core_delay_; }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::uint64_t submitted_ = 0;
  std::uint64_t ended_ = 0;
  bool stopping_ = false;
  std::exception_ptr problem_;
  std::optional<CoreDelay> core_delay_;  // constructed on the worker's thread
  std::thread thread_;
};

}  // namespace kzero::comm
