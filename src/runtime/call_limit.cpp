#include "runtime/call_limit.hpp"

#include <unistd.h>

#include <system_error>
#include <utility>

namespace kzero::runtime {

CallLimit::CallLimit(std::chrono::duration<double> limit, int exit_code,
                     std::function<void()> last_act) {
  try {
    thread_ = std::thread([this, limit, exit_code, last_act = std::move(last_act)] {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, limit, [this] { return left_; })) return;
      if (last_act) last_act();
      ::_exit(exit_code);
    });
  } catch (const std::system_error&) {  // without the limit, the program still ends unless it hangs
  }
}

CallLimit::~CallLimit() {
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

}  // namespace kzero::runtime
