// In place of tests/unit/kernels/tensor_cores/turns.hpp: threads as ThreadSanitizer knows them.
// A team's barrier orders what they do in memory; the instructions in which a warp's lanes meet do
// not, as PTX promises nothing of the kind.
#pragma once

#include <functional>
#include <source_location>

#include "fibers.hpp"
#include "omission.hpp"

namespace kzero::kernels {

class Fibers {
 public:
  static void run(int count, const std::function<void(int)>& part) {
    struct Run {
      const std::function<void(int)>& part;
    } run{part};
    const auto call = [](void* argument, int i) { static_cast<Run*>(argument)->part(i); };
    races::run_fibers(count, call, &run);
  }

  static int number() { return races::running(); }
};

class LaneMeeting {
 public:
  explicit LaneMeeting(int lanes) { meeting_.set_size(lanes); }

  void arrive_and_wait() { meeting_.meet("an instruction of a warp"); }

 private:
  races::Meeting meeting_;
};

class FiberTeam {
 public:
  explicit FiberTeam(int threads) { meeting_.set_size(threads); }

  void team_barrier(const std::source_location& at = std::source_location::current()) {
    if (!races::omitted(at)) meeting_.wait("team_barrier");
  }

 private:
  races::Meeting meeting_;
};

}  // namespace kzero::kernels
