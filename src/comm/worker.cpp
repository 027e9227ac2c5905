#include "comm/worker.hpp"

#include "base/timeline.hpp"
#include "runtime/execution.hpp"

namespace kzero::comm {

Worker::Worker(const std::string& name)
    : thread_([this, name] {
        name_lane(name);
        run();
      }) {}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t Worker::submit(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
  return ++submitted_;
}

void Worker::wait(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ >= number || problem_; });
  if (problem_) std::rethrow_exception(problem_);
}

void Worker::run() {
  runtime::use_device();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || (!tasks_.empty() && !problem_); });
    if (stopping_) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    std::exception_ptr problem;
    try {
      task();
    } catch (...) {
      problem = std::current_exception();
    }
    lock.lock();
    problem_ = problem;
    ++ended_;
    changed_.notify_all();
  }
}

}  // namespace kzero::comm
