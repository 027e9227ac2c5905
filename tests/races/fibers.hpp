// Threads of teams as ThreadSanitizer's fibers. One thread of the process runs them in turns, from
// barrier to barrier, so a run repeats exactly and needs no cores. ThreadSanitizer takes each for a
// thread: it compares what barriers order, whenever it happened, so it finds what is not ordered.
#pragma once

namespace kzero::races {

/// A barrier of `size` fibers.
class Meeting {
 public:
  void set_size(int size) { size_ = size; }

  /// Waits for the other fibers, which have to come for the same reason: else the program ends with
  /// a message. Work that each did before is done for all.
  void wait(const char* reason);

  /// Waits without ordering what the fibers did in memory, as the instructions of a warp do.
  void meet(const char* reason);

 private:
  int size_ = 1, arrived_ = 0;
  unsigned turn_ = 0;
  const char* reason_ = nullptr;
  char order_[2] = {};  // whose addresses ThreadSanitizer knows the turns by, even and odd
};

/// The number of the fiber that runs; -1 outside.
int running();

/// Calls part(argument, i) for i in [0, count), each on a fiber of its own, after what the caller
/// did and before what it does next. Ends the program with a message if all that remain wait.
void run_fibers(int count, void (*part)(void* argument, int i), void* argument);

}  // namespace kzero::races
