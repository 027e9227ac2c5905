#include "comm/worker.hpp"

#include "base/timeline.hpp"
#include "runtime/execution.hpp"

namespace kzero::comm {

namespace {

/// Runs f and returns the exception that it threw, or null.
template <class F>
std::exception_ptr problem_of(const F& f) {
  try {
    f();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

Worker::Worker(const std::string& name)
    : thread_([this, name] {
        name_lane(name);
        run();
      }) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return core_delay_.has_value(); });
}

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
  std::exception_ptr problem = problem_of(runtime::use_device);
  std::unique_lock lock(mutex_);
  core_delay_.emplace();
  problem_ = problem;
  changed_.notify_all();
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || (!tasks_.empty() && !problem_); });
    if (stopping_) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    problem = problem_of(task);
    lock.lock();
    problem_ = problem;
    ++ended_;
    changed_.notify_all();
  }
}

}  // namespace kzero::comm
