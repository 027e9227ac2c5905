// Threads of a team that alternate on one system thread. Each runs until it waits at a barrier. The
// order is deterministic, and 128 threads cost no more than their work.
#pragma once

#include <gtest/gtest.h>
#include <ucontext.h>

#include <functional>
#include <memory>
#include <vector>

namespace kzero::kernels {

class Fibers {
 public:
  /// Runs part(number) for all numbers in [0,count) and returns when all have returned. If the rest
  /// wait at barriers for each other or for parts that have returned, fails the test and drops
  /// them.
  static void run(int count, const std::function<void(int)>& part) {
    Fibers fibers(count, part);
    current = &fibers;
    for (int running = count, before = 0; running > 0; before = running) {
      running = 0;
      fibers.moved_ = false;
      for (fibers.number_ = 0; fibers.number_ < count; ++fibers.number_) {
        Fiber& fiber = fibers.fibers_[fibers.number_];
        if (fiber.is_done) continue;
        swapcontext(&fibers.main_, &fiber.context);
        running += !fiber.is_done;
      }
      if (running > 0 && running == before && !fibers.moved_) {
        ADD_FAILURE() << running << " of " << count << " threads wait at a barrier for ever";
        break;
      }
    }
    current = nullptr;
  }

  /// The number of the running part, or -1 outside of run().
  static int number() { return current == nullptr ? -1 : current->number_; }

  /// Says that a barrier has let its threads go.
  static void moved() { current->moved_ = true; }

  /// Switches to the other parts.
  static void yield() { swapcontext(&current->fibers_[number()].context, &current->main_); }

 private:
  static constexpr std::size_t stack_bytes = 256 * 1024;

  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool is_done = false;
  };

  Fibers(int count, const std::function<void(int)>& part) : part_(part), fibers_(count) {
    for (Fiber& fiber : fibers_) {
      fiber.stack = std::make_unique<char[]>(stack_bytes);
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = stack_bytes;
      fiber.context.uc_link = &main_;
      makecontext(&fiber.context, &Fibers::start, 0);
    }
  }

  static void start() {
    current->part_(number());
    current->fibers_[number()].is_done = true;
  }

  static inline Fibers* current = nullptr;

  const std::function<void(int)>& part_;
  std::vector<Fiber> fibers_;
  ucontext_t main_{};
  int number_ = 0;
  bool moved_ = false;  // since the last part had its turn
};

/// The meeting point of a warp's lanes in an instruction.
class LaneMeeting {
 public:
  explicit LaneMeeting(int lanes) : count_(lanes) {}

  void arrive_and_wait() {
    const int mine = round_;
    if (++arrived_ == count_) {
      arrived_ = 0;
      ++round_;
      Fibers::moved();
    }
    while (round_ == mine) Fibers::yield();
  }

 private:
  int count_, arrived_ = 0, round_ = 0;
};

/// The barrier of a team's threads.
class FiberTeam {
 public:
  explicit FiberTeam(int threads) : meeting_(threads) {}

  void team_barrier() { meeting_.arrive_and_wait(); }

 private:
  LaneMeeting meeting_;
};

}  // namespace kzero::kernels
