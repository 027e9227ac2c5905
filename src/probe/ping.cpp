#include "probe/ping.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/wait.hpp"
#include "probe/odd.hpp"

namespace kzero::probe {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int tag = 4;
constexpr Index small_bytes = 8, first_bytes = Index{64} << 10, large_bytes = Index{4} << 20;
constexpr int small_batch = 8;
constexpr double slow_round_trip = 0.2;  // seconds; messages do not grow beyond it
constexpr double small_seconds = 0.2, large_seconds = 0.6;
constexpr int most_batches = 32, most_large = 9;

/// The next messages that the asking rank wants answered. 0 messages: the figures follow.
struct Batch {
  Index bytes = 0;
  Index messages = 0;
};

void wait_yielding(MPI_Request request) {
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::yield();
  }
}

class End {
 public:
  End(const grid::Group& group, int partner)
      : comm_(group.handle()), partner_(partner), buffer_(large_bytes) {}

  void send(const void* data, Index bytes) const {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, partner_, tag, comm_, &request);
    wait_yielding(request);
  }

  void receive(void* data, Index bytes) const {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, partner_, tag, comm_, &request);
    wait_yielding(request);
  }

  /// Answers batches until the figures arrive.
  Link answer() {
    for (Batch batch;;) {
      receive(&batch, sizeof batch);
      if (batch.messages == 0) break;
      for (Index i = 0; i < batch.messages; ++i) {
        receive(buffer_.data(), batch.bytes);
        send(buffer_.data(), batch.bytes);
      }
    }
    Link link;
    receive(&link, sizeof link);
    return link;
  }

  std::vector<double> round_trips(const Batch& batch) {
    send(&batch, sizeof batch);
    std::vector<double> seconds;
    for (Index i = 0; i < batch.messages; ++i) {
      const auto begin = Clock::now();
      send(buffer_.data(), batch.bytes);
      receive(buffer_.data(), batch.bytes);
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return seconds;
  }

  Link ask() {
    const Link link{ask_latency(), ask_bandwidth()};
    const Batch end{};
    send(&end, sizeof end);
    send(&link, sizeof link);
    return link;
  }

 private:
  /// Repeats a batch `enough` times or until the time is over. Returns the lowest median, because a
  /// node's other work delays messages by more than links differ.
  double best_median(const Batch& batch, int enough, double seconds) {
    const auto begin = Clock::now();
    double best = median_of(round_trips(batch));
    for (int times = 1; times < enough; ++times) {
      if (std::chrono::duration<double>(Clock::now() - begin).count() >= seconds) break;
      best = std::min(best, median_of(round_trips(batch)));
    }
    return best;
  }

  double ask_latency() {
    round_trips({small_bytes, small_batch});  // connects
    return best_median({small_bytes, small_batch}, most_batches, small_seconds) / 2;
  }

  /// Messages grow until a round trip is slow, so that a link of 1 Mbit/s does not take minutes.
  double ask_bandwidth() {
    Index bytes = first_bytes;
    while (round_trips({bytes, 1}).front() < slow_round_trip && bytes < large_bytes)
      bytes = std::min(4 * bytes, large_bytes);
    const double seconds = best_median({bytes, 1}, most_large, large_seconds);
    return static_cast<double>(bytes) / (seconds / 2);
  }

  MPI_Comm comm_;
  int partner_;
  std::vector<std::byte> buffer_;
};

}  // namespace

Link measure_link(const grid::Group& group, int partner) {
  const Waiting waiting({"messages of a measured link", group.name(), group.launch_rank(partner)});
  End end(group, partner);
  return group.rank() < partner ? end.ask() : end.answer();
}

void wait_for_all(const grid::Group& group) {
  const Waiting waiting({"measurements of all ranks", group.name()});
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(group.handle(), &request);
  for (int done = 0; done == 0;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace kzero::probe
