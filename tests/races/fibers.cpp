// Compiled without -fsanitize=thread, and without inline functions that others instantiate with it:
// fibers share the scheduler's own data, in turns.
#include "fibers.hpp"

#include <sanitizer/tsan_interface.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kzero::races {

namespace {

constexpr int max_fibers = 2048;
constexpr std::size_t stack_bytes = std::size_t{256} << 10;

struct Fiber {
  ucontext_t context;
  void* thread;  // ThreadSanitizer's
  bool is_done;
};

struct Scheduler {
  ucontext_t caller_context;
  void* caller;
  Fiber* fibers[max_fibers];
  int made, running = -1;
  bool progress;
  void (*part)(void*, int);
  void* argument;
  char begin, end;  // whose addresses order a run after and before its caller
};

Scheduler scheduler;

[[noreturn]] void fail(const char* what, const char* first, const char* second) {
  std::fprintf(stderr, "a team's threads %s: %s, %s\n", what, first, second);
  std::abort();
}

void return_to_caller() {
  Fiber& own = *scheduler.fibers[scheduler.running];
  __tsan_switch_to_fiber(scheduler.caller, __tsan_switch_to_fiber_no_sync);
  swapcontext(&own.context, &scheduler.caller_context);
}

void resume(int i) {
  scheduler.running = i;
  Fiber& fiber = *scheduler.fibers[i];
  __tsan_switch_to_fiber(fiber.thread, __tsan_switch_to_fiber_no_sync);
  swapcontext(&scheduler.caller_context, &fiber.context);
}

/// The loop of a fiber: its part of one run after the other.
void live() {
  for (;;) {
    const int own = scheduler.running;
    __tsan_acquire(&scheduler.begin);
    scheduler.part(scheduler.argument, own);
    __tsan_release(&scheduler.end);
    scheduler.fibers[own]->is_done = true;
    return_to_caller();
  }
}

void make_fiber() {
  if (scheduler.made == max_fibers)
    fail("are too many", "the limit is max_fibers", "in tests/races/fibers.cpp");
  auto* const fiber = static_cast<Fiber*>(std::calloc(1, sizeof(Fiber)));
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp =
      mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fiber->context.uc_stack.ss_sp == MAP_FAILED) fail("have no stack", "mmap", "failed");
  fiber->context.uc_stack.ss_size = stack_bytes;
  makecontext(&fiber->context, live, 0);
  fiber->thread = __tsan_create_fiber(0);
  scheduler.fibers[scheduler.made++] = fiber;
}

}  // namespace

void Meeting::wait(const char* reason) {
  char* const order = &order_[turn_ % 2];  // free again: who left two turns ago has met since
  __tsan_release(order);
  meet(reason);
  __tsan_acquire(order);
}

void Meeting::meet(const char* reason) {
  if (arrived_ == 0) reason_ = reason;
  if (std::strcmp(reason_, reason) != 0) fail("do not meet", reason_, reason);
  const unsigned turn = turn_;
  scheduler.progress = true;
  if (++arrived_ == size_) {
    arrived_ = 0;
    ++turn_;
  }
  while (turn_ == turn) return_to_caller();
}

int running() { return scheduler.running; }

void run_fibers(int count, void (*part)(void* argument, int i), void* argument) {
  while (scheduler.made < count) make_fiber();
  for (int i = 0; i < count; ++i) scheduler.fibers[i]->is_done = false;
  scheduler.caller = __tsan_get_current_fiber();
  scheduler.part = part;
  scheduler.argument = argument;
  __tsan_release(&scheduler.begin);
  for (int left = count; left > 0;) {
    scheduler.progress = false;
    for (int i = 0; i < count; ++i) {
      if (scheduler.fibers[i]->is_done) continue;
      resume(i);
      if (scheduler.fibers[i]->is_done) {
        --left;
        scheduler.progress = true;
      }
    }
    if (!scheduler.progress) fail("wait for ever", "some at one barrier", "some at another");
  }
  scheduler.running = -1;
  __tsan_acquire(&scheduler.end);
}

}  // namespace kzero::races
