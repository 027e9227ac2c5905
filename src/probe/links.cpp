#include "probe/links.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/wait.hpp"
#include "probe/outliers.hpp"

namespace kzero::probe {

namespace {

/// Brings every rank's links to the root, in rank order.
std::vector<MeasuredLink> gathered(const grid::Group& world,
                                   const std::vector<MeasuredLink>& mine) {
  const std::string text(reinterpret_cast<const char*>(mine.data()),
                         mine.size() * sizeof(MeasuredLink));
  std::vector<MeasuredLink> all;
  for (const std::string& part : world.gather(text)) {
    const std::size_t before = all.size();
    all.resize(before + part.size() / sizeof(MeasuredLink));
    if (!part.empty()) std::memcpy(all.data() + before, part.data(), part.size());
  }
  return all;
}

}  // namespace

std::vector<MeasuredLink> measure_between(const grid::Group& world, const grid::Nodes& nodes) {
  const int node = nodes.of(world.rank());
  const bool is_leader = nodes.first_rank(node) == world.rank();
  std::vector<MeasuredLink> mine;
  for (const int round : chosen_rounds(nodes.count(), max_rounds)) {
    const int partner = partner_of(node, nodes.count(), round);
    if (is_leader && partner >= 0) {
      const Link link = measure_link(world, nodes.first_rank(partner));
      if (node < partner) mine.push_back({node, partner, link});
    }
    wait_for_all(world);
  }
  return gathered(world, mine);
}

std::vector<MeasuredLink> measure_within(const grid::Group& world, const grid::Nodes& nodes) {
  const std::vector<int>& ranks = nodes.ranks(nodes.of(world.rank()));
  const auto position = std::ranges::find(ranks, world.rank()) - ranks.begin();
  const auto count = static_cast<std::ptrdiff_t>(ranks.size());
  std::vector<MeasuredLink> mine;
  for (const std::ptrdiff_t first : {0, 1}) {
    const std::ptrdiff_t partner = (position - first) % 2 == 0 ? position + 1 : position - 1;
    if (position >= first && partner >= first && partner < count) {
      const int other = ranks[partner];
      const Link link = measure_link(world, other);
      if (position < partner) mine.push_back({world.rank(), other, link});
    }
    wait_for_all(world);
  }
  return gathered(world, mine);
}

Link best_of(const std::vector<MeasuredLink>& links, int place) {
  Link best{unmeasured, unmeasured};
  for (const MeasuredLink& measured : links) {
    if (measured.one != place && measured.other != place) continue;
    best.latency_seconds = std::fmin(best.latency_seconds, measured.link.latency_seconds);
    best.bytes_per_second = std::fmax(best.bytes_per_second, measured.link.bytes_per_second);
  }
  return best;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr int tag = 4;
constexpr Index small_bytes = 8, first_bytes = Index{64} << 10, large_bytes = Index{4} << 20;
constexpr int small_batch = 8;
constexpr double slow_round_trip = 0.2;  // seconds, beyond which messages do not grow further
constexpr double small_seconds = 0.2, large_seconds = 0.6;
constexpr int max_batches = 32, max_large = 9;

/// The batch that the asking rank tells the other one to answer next. 0 messages: the figures
/// follow.
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

/// One end of a link.
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

  /// Answers batches until the figures come.
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

  /// Returns the seconds of each round trip of a batch.
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
  /// Repeats a batch until it was done often enough or the time is over. Returns the lowest median,
  /// because other work on a node delays messages by more than links differ.
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
    return best_median({small_bytes, small_batch}, max_batches, small_seconds) / 2;
  }

  /// Makes messages larger until a round trip is slow, so that a link of 1 Mbit/s does not take
  /// minutes.
  double ask_bandwidth() {
    Index bytes = first_bytes;
    while (round_trips({bytes, 1}).front() < slow_round_trip && bytes < large_bytes)
      bytes = std::min(4 * bytes, large_bytes);
    const double seconds = best_median({bytes, 1}, max_large, large_seconds);
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

namespace {

/// The number of players, rounded up to an even number. The added player stands for a rest.
int even(int players) { return players + players % 2; }

}  // namespace

int all_rounds(int players) { return players < 2 ? 0 : even(players) - 1; }

std::vector<int> chosen_rounds(int players, int max) {
  const int all = all_rounds(players), count = std::min(all, max);
  std::vector<int> rounds;
  rounds.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    rounds.push_back(static_cast<int>(static_cast<long>(i) * all / count));
  return rounds;
}

int partner_of(int player, int players, int round) {
  // The numbers of two partners add up to the round, modulo the number of rounds. The player that
  // would meet itself meets the last player, which is not part of the circle.
  const int circle = all_rounds(players), last = circle;
  if (circle == 0) return -1;
  if (player == last) {
    const long half = (circle + 1) / 2;  // the inverse of 2 modulo an odd number
    return static_cast<int>(round * half % circle);
  }
  const int other = ((round - player) % circle + circle) % circle;
  const int partner = other == player ? last : other;
  return partner < players ? partner : -1;
}

}  // namespace kzero::probe
